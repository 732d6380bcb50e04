//! Any bytes as a view, from either side.
#![no_main]

#[path = "../checks/wire.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::views(data));
