//! Any bytes that the person's terminal sends.
#![no_main]

#[path = "../checks/input.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::input(data));
