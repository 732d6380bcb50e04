//! Any bytes that the person's terminal sends.
#![no_main]
#![allow(dead_code, reason = "a part of a crate, without the rest of it")]

#[path = "../checks/input.rs"]
mod checks;
#[path = "../../crates/tui/src/input/mod.rs"]
#[allow(dead_code, reason = "the rest of the TUI uses it")]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::input(data));
