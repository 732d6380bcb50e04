//! `patterm upgrade`: another server takes over, and nothing notices.

use patterm_wire::requests::ServerEntry;

use crate::support::Place;

fn server(place: &Place) -> ServerEntry {
    let mut entries: Vec<ServerEntry> =
        serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
    let project = place.project();
    entries.retain(|entry| entry.key == project.key());
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

#[test]
fn programs_screens_and_offsets_go_on_under_the_new_server() {
    let place = Place::new();
    let id = place.run(&["run", "--", "sh", "-c", "echo before; cat; exit 6"]);
    let id = id.trim();
    place.run(&["wait", id, "before"]);
    let ended = place.run(&["run", "--", "sh", "-c", "echo last words; exit 3"]);
    place.run(&["wait", ended.trim(), "last words"]);
    let (old, screen) = (server(&place), place.run(&["screen", id]));
    let offset =
        place.run(&["call", "get_process_raw_output", &format!("{{\"process_id\":\"{id}\"}}")]);

    let said = place.run(&["upgrade"]);
    assert!(said.contains("everything keeps running"), "{said}");
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

#[test]
fn without_a_server_one_is_started() {
    let place = Place::new();
    let said = place.run(&["upgrade"]);
    assert!(said.contains("no server was running"), "{said}");
    place.run(&["kill"]);
}
