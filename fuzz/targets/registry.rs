//! Any bytes as an entry of the registry.
#![no_main]

#[path = "../checks/registry.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::entry(data));
