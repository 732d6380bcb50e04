//! Shared by the benchmarks and the recorder of the picture: a terminal.

pub mod terminal;
