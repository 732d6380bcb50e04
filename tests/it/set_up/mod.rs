//! Setup: a project file, a client's settings, the doctor, and files generated from the
//! definitions.

mod doctor;
mod generate;
mod hostile;
mod init;
mod json;
mod manners;
mod setup;
mod verbs;

use std::process::{Output, Stdio};

use crate::support::Place;

/// Runs a verb without a terminal that must fail; returns its output.
#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        place.patterm(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}
