//! Any bytes that a program prints.
#![no_main]

#[path = "../checks/screen.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::screen(data));
