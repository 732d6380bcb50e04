//! Versions of screens: they only grow, so that who knows one is never told that nothing changed when
//! something did.

use serde_json::json;

use super::survival::{desk_of, kill};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

/// A process's screen as somebody sees it who knows a version of it: the new version, and whether that
/// is told to be the same.
fn look(tools: &mut ToolClient, id: &str, known: u64) -> (u64, bool) {
    let grid = tools.ok("get_process_output", json!({"process_id": id, "since_offset": known}));
    let version = grid["screen_version"].as_u64().unwrap();
    assert!(version < 1 << 53, "it is told as a JSON number");
    assert_eq!(tools.status(id)["screen_version"], version);
    (version, grid["unchanged"] == true)
}

/// Looks at a screen that is another than before, whatever it was.
#[track_caller]
fn look_anew(tools: &mut ToolClient, id: &str, known: u64) -> u64 {
    let (version, unchanged) = look(tools, id, known);
    assert!(version > known && !unchanged, "{version} after {known}");
    // And what is the same is told to be.
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
        version = look_anew(&mut tools, &id, version);
        // The same again and again: a replay of it is fewer changes than it was at first.
        kill(&server);
        (tools, server) = desk_of(&place);
        version = look_anew(&mut tools, &id, version);
        version_over = look_anew(&mut tools, &over, version_over);
    }
    place.run(&["upgrade"]);
    (tools, _) = desk_of(&place);
    version = look_anew(&mut tools, &id, version);
    tools.ok("restart_process", json!({"process_id": id}));
    tools.wait(&id, "up");
    look_anew(&mut tools, &id, version);
    place.run(&["kill"]);
}
