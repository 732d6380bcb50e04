//! Agents in the TUI, with a fake CLI: started beside a pane, and restored after everything was ended.

use serde_json::json;

use super::Screen;
use crate::agents::fake::{settle, turns};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};

/// A fake agent with a title of its own, to be chosen from the list.
const SOLO: &str = r#"
[agents.solo]
like = "fake"
title = "Solo"
"#;

fn place() -> Place {
    let mut place = Place::new();
    settle(&mut place, SOLO);
    place
}

#[test]
fn an_agent_starts_beside_a_pane_in_its_folder_with_a_prompt_of_several_lines() {
    let place = place();
    let mut screen = Screen::with_patterm(&place, 160, 40);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("mkdir -p deep/er && cd deep/er && echo in $((1 + 1))");
    screen.until("in 2");
    screen.lead("A");
    screen.until("start an agent beside this pane");
    screen.type_in("Solo");
    screen.until_it(|shown| shown.contains("● Solo") && !shown.contains("● Fake"));
    screen.press(&["Enter"]);
    screen.until("first prompt for solo");
    screen.type_in("first line");
    screen.press(&["M-Enter"]);
    screen.type_in("second line");
    screen.press(&["C-j"]);
    screen.type_in("third");
    screen.until_it(|shown| {
        shown.lines().any(|line| line.trim_end_matches(['│', ' ']).ends_with("third"))
    });
    screen.press(&["Enter"]);
    let told = until("the prompt arrived", || turns(&place).pop());
    assert_eq!(told, "first line\nsecond line\nthird");
    // Beside the shell, which is still shown.
    let shown = screen.until_it(|shown| shown.contains(" solo  ○ idle"));
    assert!(shown.contains("in 2"), "{shown}");
    let server = place.serve();
    let status = ToolClient::at(&server.socket()).status("p2");
    let folder = status["working_dir"].as_str().unwrap();
    assert!(folder.ends_with("project/deep/er"), "{folder}");
}

#[test]
fn a_restored_agent_says_that_it_was_interrupted_and_what_waits_for_it() {
    let place = place();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.ok("spawn_agent", json!({"agent": "fake"}))["process_id"].clone();
    let state = |tools: &mut ToolClient, wanted: &str| {
        until(wanted, || (tools.status("p1")["activity"]["state"] == wanted).then_some(()));
    };
    state(&mut tools, "idle");
    // It asks a person something, and a message waits behind that.
    let first = json!({"target_process_id": id, "message": "ask"});
    tools.ok("send_message", first);
    state(&mut tools, "blocked");
    tools.ok("send_message", json!({"target_process_id": id, "message": "and then this"}));
    assert!(!place.run(&["ps"]).contains("interrupted"));
    place.run(&["kill"]);
    let ended = place.run(&["ps"]);
    assert!(
        ended.contains("interrupted by `patterm kill`; waiting for it: 1 queued text"),
        "{ended}"
    );
    place.run(&["restore"]);
    let listed = place.run(&["ps"]);
    assert!(listed.contains("interrupted by `patterm kill`"), "{listed}");
    assert!(listed.contains("it had asked:"), "{listed}");
    let status = place.run(&["status", "p1"]);
    assert!(status.contains("interrupted: interrupted by `patterm kill`"), "{status}");
    let mut screen = Screen::with_patterm(&place, 160, 40);
    let shown = screen.until("↺ interrupted by `patterm kill`");
    assert!(shown.contains("1↺"), "marked in the tree: {shown}");
    // It goes away once a person types there.
    screen.type_in("x");
    screen.until_it(|shown| !shown.contains('↺'));
    assert!(!place.run(&["ps"]).contains("interrupted"));
}
