//! Any bytes, cut into any reads.
#![no_main]

#[path = "../checks/wire.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::frames(data));
