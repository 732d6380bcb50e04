//! `patterm doctor` finds what is broken and says what to do.

use serde_json::Value;

use super::fails;
use crate::support::Place;

fn findings(place: &Place) -> (Vec<Value>, Option<i32>) {
    let output = place.patterm(&["doctor", "--json"]).output().unwrap();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    (findings.as_array().unwrap().clone(), output.status.code())
}

#[track_caller]
fn health(findings: &[Value], check: &str) -> (String, Option<String>) {
    let found = findings.iter().find(|finding| finding["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {findings:?}"));
    let text = |field: &str| found[field].as_str().map(str::to_owned);
    (text("health").unwrap(), text("advice"))
}

#[test]
fn a_sound_set_up_is_sound() {
    let place = Place::new();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(0), "{found:?}");
    for check in ["patterm", "runtime folder", "state folder", "server", "version", "project file"]
    {
        assert_eq!(health(&found, check).0, "good", "{check}: {found:?}");
    }
    for check in ["agents", "terminal", "locale"] {
        assert_ne!(health(&found, check).0, "broken", "{check}: {found:?}");
    }
    let report = place.run(&["doctor"]);
    assert!(report.contains("good    server") && report.contains("running, pid"), "{report}");
}

#[test]
fn what_is_broken_is_named_with_what_to_do() {
    let place = Place::new();
    let file = place.path("project/patterm.toml");
    std::fs::write(&file, "[processes.a]\ncommand = 'cat'\n").unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(0), "not trusted is not broken");
    let (state, advice) = health(&found, "project file");
    assert_eq!(state, "fair");
    assert!(advice.unwrap().contains("`patterm trust`"));

    std::fs::write(&file, "[processes.a]\ncomand = 'cat'\n").unwrap();
    std::fs::create_dir_all(place.path("home/.config/patterm")).unwrap();
    std::fs::write(place.path("home/.config/patterm/config.toml"), "[agents").unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(1));
    assert_eq!(health(&found, "project file").0, "broken");
    assert_eq!(health(&found, "settings").0, "broken");
    let said = fails(&place, &["doctor"]);
    assert!(said.starts_with("patterm: 2 of "), "{said}");
}

#[test]
fn a_folder_that_cannot_be_used_is_found() {
    let place = Place::new();
    std::fs::write(place.path("run/patterm"), "").unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(1));
    assert_eq!(health(&found, "runtime folder").0, "broken");
    assert_eq!(health(&found, "server").0, "broken");
    assert_eq!(health(&found, "state folder").0, "good");
}
