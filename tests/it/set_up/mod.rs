//! Setup: a project file, a client's settings, the doctor, and files generated from the
//! definitions.

mod damaged;
mod doctor;
mod generate;
mod hostile;
mod init;
mod json;
mod manners;
mod setup;
mod usage;
mod user_settings;
mod verbs;

use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::Place;

/// Makes a folder a repository with a commit.
fn commit(place: &Place, folder: &Path, subject: &str) {
    let settings =
        ["-c", "init.defaultBranch=main", "-c", "user.name=n", "-c", "user.email=e@example.org"];
    for arguments in
        [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "-m", subject]]
    {
        let mut git = place.command(Path::new("git"));
        git.args(settings).args(arguments).current_dir(folder);
        assert!(git.status().unwrap().success(), "git {arguments:?}");
    }
}

/// Runs a verb without a terminal that must fail; returns its output.
#[track_caller]
fn fails(place: &Place, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        place.patterm(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}
