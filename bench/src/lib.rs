//! What the benchmarks and the pictures share: a terminal of our own.

pub mod terminal;
