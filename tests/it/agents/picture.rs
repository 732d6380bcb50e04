//! `scripts/picture` records today's texts: the recording in the documents begins as one that is made now.

use std::path::Path;

use crate::clients::installed;
use crate::support::{Place, patterm_binary};

/// The screens of a recording with their headings.
fn frames(page: &str) -> Vec<String> {
    page.split("\n## ").skip(1).map(str::to_owned).collect()
}

#[test]
fn the_recording_is_current() {
    let place = Place::new();
    let docs = place.folder("docs");
    std::fs::create_dir(docs.join("recordings")).unwrap();
    let mut recorder = place.command(&patterm_binary().with_file_name("picture"));
    let output = recorder.arg(installed()).arg(&docs).arg("tour").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "picture: {errors}");
    let svg = std::fs::read_to_string(docs.join("picture.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(">blocked<"), "{svg}");

    let read = |folder: &Path| std::fs::read_to_string(folder.join("recordings/tui.md")).unwrap();
    let now = frames(&read(&docs));
    let stored = frames(&read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")));
    let headings = |frames: &[String]| -> Vec<String> {
        frames.iter().map(|frame| frame.lines().next().unwrap().to_owned()).collect()
    };
    assert_eq!(headings(&stored), headings(&now), "run `scripts/picture`");
    // The later screens contain times and the agents' own texts.
    assert_eq!(stored[..2], now[..2], "run `scripts/picture`");
}
