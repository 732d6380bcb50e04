//! One binary for all integration tests; a module for each thing that can break.

mod support;

mod clients;
mod fuzz_corpus;
mod protocol;
mod smoke;
mod tidy;
