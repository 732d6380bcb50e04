//! Any text as a project file.
#![no_main]

#[path = "../checks/project.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::project(data));
