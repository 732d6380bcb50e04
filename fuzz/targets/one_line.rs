//! Any JSON text written as one line.
#![no_main]

#[path = "../checks/wire.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::one_line(data));
