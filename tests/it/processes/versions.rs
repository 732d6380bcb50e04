//! Versions of screens: they only grow, so that a client with an old version never misses a change.

use serde_json::json;

use super::survival::{desk_of, kill};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

/// Reads a screen with a known version: the new version, and whether the screen is reported as
/// unchanged.
fn look(tools: &mut ToolClient, id: &str, known: u64) -> (u64, bool) {
    let grid = tools.ok("get_process_output", json!({"process_id": id, "since_offset": known}));
    let version = grid["screen_version"].as_u64().unwrap();
    assert!(version < 1 << 53, "it is a JSON number");
    assert_eq!(tools.status(id)["screen_version"], version);
    (version, grid["unchanged"] == true)
}

/// Reads a screen that must have changed.
#[track_caller]
fn read_changed(tools: &mut ToolClient, id: &str, known: u64) -> u64 {
    let (version, unchanged) = look(tools, id, known);
    assert!(version > known && !unchanged, "{version} after {known}");
    // An unchanged screen is reported as unchanged.
    assert_eq!(look(tools, id, version), (version, true));
    version
}

#[test]
fn screen_version_only_grows_across_kill_upgrade_and_restart() {
    let place = Place::new();
    let (mut tools, mut server) = desk_of(&place);
    let id = tools.sh("stty -echo; echo up; exec cat");
    let over = tools.sh("echo one; echo two; exit 0");
    tools.ended(&over);
    let [mut version, mut version_over] = [&id, &over].map(|id| look(&mut tools, id, 0).0);
    for word in ["first", "second", "third"] {
        tools.line(&id, word);
        tools.wait(&id, word);
        version = read_changed(&mut tools, &id, version);
        // The same content repeatedly: a replay has fewer changes than the original.
        kill(&server);
        (tools, server) = desk_of(&place);
        version = read_changed(&mut tools, &id, version);
        version_over = read_changed(&mut tools, &over, version_over);
    }
    place.run(&["upgrade"]);
    (tools, _) = desk_of(&place);
    version = read_changed(&mut tools, &id, version);
    tools.ok("restart_process", json!({"process_id": id}));
    tools.wait(&id, "up");
    read_changed(&mut tools, &id, version);
    place.run(&["kill"]);
}
