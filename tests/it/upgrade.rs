//! `patterm upgrade`: another server takes over, and nothing notices.

mod continuing;
mod from_0_1_0;

use std::process::{Command, Stdio};

use patterm_wire::requests::ServerEntry;

use crate::support::{Place, patterm_binary};

fn server(place: &Place) -> ServerEntry {
    let mut entries: Vec<ServerEntry> =
        serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
    let project = place.project();
    entries.retain(|entry| entry.key == project.key());
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

#[test]
fn programs_screens_and_offsets_continue_under_the_new_server() {
    let place = Place::new();
    let id = place.run(&["run", "--", "sh", "-c", "echo before; cat; exit 6"]);
    let id = id.trim();
    place.run(&["wait", id, "before"]);
    let ended = place.run(&["run", "--", "sh", "-c", "echo last words; exit 3"]);
    place.run(&["wait", ended.trim(), "last words"]);
    let (old, screen) = (server(&place), place.run(&["screen", id]));
    let offset =
        place.run(&["call", "get_process_raw_output", &format!("{{\"process_id\":\"{id}\"}}")]);

    let printed = place.run(&["upgrade"]);
    assert!(printed.contains("everything keeps running"), "{printed}");
    assert_ne!(server(&place).pid, old.pid);
    assert_eq!(place.run(&["screen", id]), screen);
    let again =
        place.run(&["call", "get_process_raw_output", &format!("{{\"process_id\":\"{id}\"}}")]);
    assert_eq!(again, offset);
    assert_eq!(place.run(&["screen", ended.trim()]).trim(), "last words");
    let listed = place.run(&["ps"]);
    assert!(listed.contains("running") && listed.contains("exited              3"), "{listed}");

    place.run(&["send", id, "still alive"]);
    place.run(&["wait", id, "^still alive"]);
    place.run(&["key", id, "ctrl+d"]);
    let status = format!("{{\"process_id\":\"{id}\",\"pattern\":\"no such line\"}}");
    assert!(place.run(&["call", "wait_for_pattern", &status]).contains("\"exited\": true"));
    assert!(place.run(&["ps"]).contains("exited              6"));
    place.run(&["kill"]);
}

/// Runs `upgrade` by a binary that is gone before it can start a server.
#[expect(clippy::disallowed_methods, reason = "another binary than the one under test")]
fn upgrade_by_a_removed_binary(place: &Place) -> String {
    let binary = place.path("patterm-of-tomorrow");
    std::fs::copy(patterm_binary(), &binary).unwrap();
    let as_usual = place.patterm(&["upgrade"]);
    let mut upgrade = Command::new(&binary);
    upgrade.arg("upgrade").current_dir(as_usual.get_current_dir().unwrap());
    for (name, value) in as_usual.get_envs() {
        match value {
            Some(value) => upgrade.env(name, value),
            None => upgrade.env_remove(name),
        };
    }
    let upgrade = upgrade.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::fs::remove_file(&binary).unwrap();
    let output = upgrade.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_upgrade_that_fails_returns_to_the_old_server() {
    for has_pane in [true, false] {
        let place = Place::new();
        place.serve();
        if has_pane {
            place.run(&["run", "--name", "kept", "--", "cat"]);
        }
        let old = server(&place);
        let printed = upgrade_by_a_removed_binary(&place);
        let new = server(&place);
        let again = format!("is running again (pid {})", new.pid);
        assert!(printed.contains("does not start: ") && printed.contains(&again), "{printed}");
        assert_ne!(new.pid, old.pid);
        let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        assert_eq!(program(new.pid), patterm_binary());
        if has_pane {
            place.run(&["send", "kept", "still alive"]);
            place.run(&["wait", "kept", "^still alive"]);
        }
        place.run(&["kill"]);
    }
}

#[test]
fn without_a_server_one_is_started() {
    let place = Place::new();
    let printed = place.run(&["upgrade"]);
    assert!(printed.contains("no server was running"), "{printed}");
    place.run(&["kill"]);
}
