//! Any bytes as the body of one frame.
#![no_main]

#[path = "../checks/wire.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::messages(data));
