//! Damaged state files and unusable folders are named, and what only looks leaves nothing behind.

use std::os::unix::fs::PermissionsExt;

use super::doctor::{findings, health};
use crate::support::Place;

#[test]
fn verbs_that_read_from_disk_name_a_damaged_state_file() {
    let place = Place::new();
    place.run(&["run", "--", "cat"]);
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    place.run(&["token", "new", "ci"]);
    place.run(&["kill", "--now"]);
    let printed = |arguments: &[&str]| {
        let output = place.patterm(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    assert_eq!(printed(&["ps"]).1, "");
    for (verb, file, content) in [
        (&["ps"][..], "processes.json", "{ damaged"),
        (&["pads"], "scratchpads.json", ""),
        (&["token", "ls"], "tokens.json", "{\"version\": 1, \"tokens\": 7}"),
    ] {
        let file = place.state().file(file);
        let before = std::fs::read(&file).unwrap();
        std::fs::write(&file, content).unwrap();
        let (_, stderr) = printed(verb);
        let says =
            format!("patterm: {} is damaged, so what it contained is missing here", file.display());
        assert!(
            stderr.starts_with(&says) && stderr.contains("sets it aside"),
            "{verb:?}: {stderr}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content, "it is left alone");
        std::fs::write(&file, before).unwrap();
        assert_eq!(printed(verb).1, "", "{verb:?}");
    }
}

#[test]
fn what_only_reads_creates_no_folder() {
    let place = Place::new();
    for verb in [
        &["ps"][..],
        &["logs"],
        &["events"],
        &["digest"],
        &["pads"],
        &["timers"],
        &["messages"],
        &["servers"],
        &["hooks"],
        &["agents"],
        &["token", "ls"],
        &["overview"],
        &["ls"],
        &["doctor"],
        &["screen", "p1"],
        &["call", "list_processes"],
    ] {
        let _ = place.patterm(verb).output().unwrap();
        assert!(!place.path("state/patterm").exists(), "{verb:?}");
        assert!(!place.path("run/patterm").exists(), "{verb:?}");
    }
}

/// As root everything is writable, so this runs as another user.
#[test]
fn the_doctor_names_a_folder_of_the_state_that_cannot_be_written() {
    let place = Place::of_another_user();
    place.run(&["run", "--", "true"]);
    place.run(&["kill", "--now"]);
    let output = place.state().file("output");
    std::fs::set_permissions(&output, PermissionsExt::from_mode(0o500)).unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(1), "{found:?}");
    let state = found.iter().find(|finding| finding["check"] == "state folder").unwrap();
    let expected = format!("cannot be written: {}", output.display());
    assert_eq!((&state["health"], &state["says"]), (&"broken".into(), &expected.into()));
    std::fs::set_permissions(&output, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(health(&findings(&place).0, "state folder").0, "good");
}
