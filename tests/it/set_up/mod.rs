//! Setting things up: a project file, a client's settings, the check of it all, and what comes from
//! the definitions.

mod doctor;
mod generate;
mod hostile;
mod init;
mod setup;
mod verbs;

use std::process::{Output, Stdio};

use crate::support::Place;

/// Runs a verb without a terminal that must fail; returns what it said.
#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        place.patterm(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}
