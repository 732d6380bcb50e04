//! `patterm doctor` finds problems and says how to fix them.

use serde_json::Value;

use super::fails;
use crate::support::Place;

pub(super) fn findings(place: &Place) -> (Vec<Value>, Option<i32>) {
    let output = place.patterm(&["doctor", "--json"]).output().unwrap();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    (findings.as_array().unwrap().clone(), output.status.code())
}

#[track_caller]
pub(super) fn health(findings: &[Value], check: &str) -> (String, Option<String>) {
    let found = findings.iter().find(|finding| finding["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {findings:?}"));
    let text = |field: &str| found[field].as_str().map(str::to_owned);
    (text("health").unwrap(), text("advice"))
}

#[test]
fn a_good_setup_has_no_findings() {
    let place = Place::new();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(0), "{found:?}");
    for check in ["patterm", "runtime folder", "state folder", "server", "project file"] {
        assert_eq!(health(&found, check).0, "good", "{check}: {found:?}");
    }
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "it starts no server");
    for check in ["agents", "terminal", "locale"] {
        assert_ne!(health(&found, check).0, "broken", "{check}: {found:?}");
    }
    assert!(place.run(&["doctor"]).contains("good    server         none is running"));
    place.serve();
    assert_eq!(health(&findings(&place).0, "version").0, "good");
    assert!(place.run(&["doctor"]).contains("good    server         running, pid "));
}

#[test]
fn broken_things_are_named_with_a_fix() {
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
    let report = place.patterm(&["doctor"]).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("/config.toml:1:8: ") && !report.contains("\\n"), "{report}");
    let message = fails(&place, &["doctor"]);
    assert!(message.starts_with("patterm: 2 of "), "{message}");
}

#[test]
fn an_unusable_folder_is_found() {
    let place = Place::new();
    std::fs::write(place.path("run/patterm"), "").unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(1));
    assert_eq!(health(&found, "runtime folder").0, "broken");
    assert_eq!(health(&found, "server").0, "broken");
    assert_eq!(health(&found, "state folder").0, "good");
}

#[test]
fn every_finding_comes_with_a_fix() {
    let mut place = Place::new();
    let file = place.path("project/patterm.toml");
    std::fs::write(&file, "[servers.files]\ncommand = ['mcp-files']\n").unwrap();
    let node = place.path("home/node");
    std::fs::write(&node, "#!/bin/sh\necho v16.20.2\n").unwrap();
    std::fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // None of the agents' CLIs, and an old node.
    place.set("PATH", format!("{}:/usr/bin:/bin", place.path("home").display()));
    place.set("LANG", "C");
    let limited = "ulimit -n 64; exec \"$0\" doctor --json";
    let mut command = place.command(std::path::Path::new("sh"));
    let output = command.args(["-c", limited]).arg(place.binary()).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = found.as_array().unwrap();
    assert_eq!(output.status.code(), Some(0), "all of it works, if not well: {found:?}");
    for (check, words) in [
        ("agents", "install Claude Code"),
        ("project file", "`patterm trust`"),
        ("open files", "`ulimit -Hn 4096`"),
        ("node", "20 or newer"),
        ("locale", "UTF-8"),
    ] {
        let (state, advice) = health(found, check);
        assert_eq!(state, "fair", "{check}: {found:?}");
        assert!(advice.unwrap().contains(words), "{check}: {found:?}");
    }
    let message = place.run(&["trust", "--yes"]);
    assert!(message.contains("shared server files, started when it is needed"), "{message}");
    let call = place.patterm(&["call", "files__read"]).output().unwrap();
    assert_eq!(call.status.code(), Some(1));
    let (found, _) = findings(&place);
    let (state, advice) = health(&found, "shared servers");
    assert_eq!(state, "fair", "{found:?}");
    assert!(advice.unwrap().contains("`patterm servers`"), "{found:?}");
}

/// `patterm agent` searches the caller's PATH, so these must do so too.
#[test]
fn agents_are_searched_for_in_the_callers_path() {
    let mut place = Place::new();
    place.serve();
    let folder = place.folder("mine");
    let program = folder.join("codex");
    std::fs::write(&program, "#!/bin/sh\necho 99.0.0\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    place.set("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let agents = place.run(&["agents"]);
    assert!(agents.contains(&*program.to_string_lossy()), "{agents}");
    let doctor = place.run(&["doctor"]);
    assert!(doctor.contains("codex 99.0.0"), "{doctor}");
}

/// As root everything is writable, so this runs as another user.
#[test]
fn a_state_folder_that_cannot_be_written_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::of_another_user();
    let file = place.path("project/patterm.toml");
    std::fs::write(&file, "").unwrap();
    place.give_to_user(&file);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
    let message = fails(&place, &["trust", "--yes"]);
    assert!(message.contains("permission denied; run `chmod u+r`"), "{message}");
    std::fs::set_permissions(place.path("state"), PermissionsExt::from_mode(0o500)).unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(1), "{found:?}");
    let (state, advice) = health(&found, "state folder");
    assert_eq!(state, "broken");
    assert!(advice.unwrap().contains("that you can write to"), "{found:?}");
    assert_eq!(health(&found, "server").0, "broken");
}

#[test]
fn a_damaged_state_file_that_was_set_aside_is_found() {
    let place = Place::new();
    place.run(&["run", "--", "cat"]);
    place.run(&["kill"]);
    let (found, _) = findings(&place);
    assert!(!found.iter().any(|finding| finding["check"] == "state files"), "{found:?}");
    place.run(&["kill"]);
    std::fs::write(place.state().file("processes.json"), "{ damaged").unwrap();
    let (found, code) = findings(&place);
    assert_eq!(code, Some(0), "{found:?}");
    let (state, advice) = health(&found, "state files");
    assert_eq!(state, "fair", "{found:?}");
    assert!(advice.unwrap().contains("remove them"), "{found:?}");
    assert!(place.run(&["doctor"]).contains("damaged; the next server sets it aside: /"));
    place.serve();
    let report = place.run(&["doctor"]);
    assert!(report.contains("damaged, set aside and no longer used: /"), "{report}");
    assert!(report.contains("/processes.json.damaged-"), "{report}");
}

/// A server that was killed leaves its socket; that is nothing to fix.
#[test]
fn a_stale_socket_is_not_a_finding() {
    let place = Place::new();
    let entry: Value = serde_json::from_str(&place.run(&["serve", "--json"])).unwrap();
    let dead = crate::support::Running::of(entry["pid"].as_u64().unwrap() as u32);
    dead.signal(rustix::process::Signal::KILL);
    dead.wait();
    let (found, code) = findings(&place);
    assert_eq!((code, health(&found, "server").0.as_str()), (Some(0), "good"), "{found:?}");
}

#[test]
fn without_a_home_the_advice_is_a_whole_sentence() {
    let place = Place::new();
    let mut doctor = place.patterm(&["doctor", "--json"]);
    let output = doctor.env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (state, advice) = health(found.as_array().unwrap(), "server");
    assert_eq!(state, "broken", "{found}");
    let advice = advice.unwrap();
    assert!(advice.contains("it has no log: neither XDG_STATE_HOME nor HOME"), "{advice}");
}
