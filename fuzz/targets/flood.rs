//! Any lines as a flood.
#![no_main]

#[expect(dead_code, reason = "the other targets use the rest")]
#[path = "../checks/text.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::flood(data));
