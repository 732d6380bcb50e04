//! What happened while nobody looked: for a person at a shell, a person in the TUI, and an agent.

use patterm_wire::Method;
use patterm_wire::digest::{NoteLooked, ReadDigest};
use patterm_wire::events::{format_time, parse_time};
use patterm_wire::requests::AnswerDialog;
use serde_json::{Value, json};

use crate::agents::answers::{ASKING, until_dialog};
use crate::agents::fake::settle;
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Spawned};
use crate::tui::Screen;

const HOUR_MS: u64 = 3_600_000;

/// A project with an agent that asks something now and then.
fn asking() -> (Place, Spawned, ToolClient, String) {
    let mut place = Place::new();
    settle(&mut place, ASKING);
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = id_of(&tools.ok("spawn_agent", json!({"agent": "asking"})));
    until("the agent is ready", || {
        (tools.status(&id)["activity"]["state"] == "idle").then_some(())
    });
    (place, server, tools, id)
}

/// Has the agent ask, and answers for a person.
fn ask(tools: &mut ToolClient, server: &Spawned, id: &str, answers: bool) {
    tools.line(id, "choose");
    let dialog = until_dialog(&server.socket(), id, |_| true);
    if answers {
        let request = json!({"process_id": id, "dialog": dialog.version, "option": 2});
        assert_eq!(tools.ok(AnswerDialog::NAME, request)["state"], "accepted");
        until("the agent is idle again", || {
            (tools.status(id)["activity"]["state"] == "idle").then_some(())
        });
    }
}

/// The numbers and texts of entries.
fn told(entries: &Value) -> Vec<(u64, String)> {
    let entries = entries.as_array().unwrap().iter();
    let told = entries
        .map(|entry| (entry["seq"].as_u64().unwrap(), entry["text"].as_str().unwrap().to_owned()));
    told.collect()
}

fn has(entries: &Value, text: &str) -> bool {
    told(entries).iter().any(|(_, told)| told.contains(text))
}

#[test]
fn a_digest_tells_what_happened_and_is_the_same_after_a_kill() {
    let (place, server, mut tools, id) = asking();
    place.run(&["digest"]);
    let next = tools.ok("get_events", json!({}))["next"].as_u64().unwrap();
    tools.ok("send_message", json!({"target_process_id": id, "message": "hello"}));
    let delivered = json!({"types": ["message.delivered"], "since": next, "timeout_seconds": 60});
    assert_eq!(tools.ok("wait_for_event", delivered)["timed_out"], false);
    ask(&mut tools, &server, &id, true);
    let ended = tools.sh("exit 3");
    tools.ended(&ended);
    tools.ok("scratchpad_write", json!({"name": "plan", "content": "x"}));
    ask(&mut tools, &server, &id, false);
    let read = |tools: &mut ToolClient| tools.ok(ReadDigest::NAME, json!({"since": next}));
    let digest = until("the dialog is recorded", || {
        let digest = read(&mut tools);
        let is_there =
            has(&digest["needs_you"], "is blocked") && has(&digest["processes"], "exited");
        is_there.then_some(digest)
    });
    let agent = &digest["agents"][0];
    assert_eq!(agent["process_id"], id.as_str(), "{digest}");
    assert_eq!(agent["messages"]["delivered"], 1, "{agent}");
    assert!(has(&agent["entries"], "blocked: Which one? [1. Red / 2. Blue]"), "{agent}");
    assert!(has(&agent["entries"], "person answered “Which one?”: 2. Blue"), "{agent}");
    assert!(has(&digest["needs_you"], "is blocked: Which one?"), "{digest}");
    assert!(has(&digest["needs_you"], "exited with code 3"), "{digest}");
    assert!(has(&digest["processes"], "exited with code 3"), "{digest}");
    assert!(has(&digest["scratchpads"], "plan: created by person"), "{digest}");
    assert_eq!((&digest["missing"], &digest["lost"]), (&json!(0), &json!(0)));
    let blocked = &digest["needs_you"][0];
    assert_eq!((&blocked["process_id"], &blocked["run"]), (&json!(id), &json!(1)), "{blocked}");
    assert!(blocked["offset"].is_u64(), "it can be found in the output: {blocked}");
    // An agent gets the same.
    let of_tool = tools.ok("get_digest", json!({"since": next}));
    assert_eq!(told(&of_tool["digest"]["needs_you"]), told(&digest["needs_you"]));
    assert_eq!(of_tool["next"], of_tool["digest"]["next"]);

    server.kill();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    until_dialog(&server.socket(), &id, |_| true);
    let after = read(&mut tools);
    for section in ["needs_you", "processes", "ports", "scratchpads", "servers", "project"] {
        assert_eq!(told(&after[section]), told(&digest[section]), "{section}");
    }
    for member in ["entries", "turns", "messages", "sent", "name"] {
        let (before, after) = (&agent[member], &after["agents"][0][member]);
        match member {
            "entries" => assert_eq!(told(after), told(before)),
            _ => assert_eq!(after, before, "{member}"),
        }
    }

    // The shell continues where it looked last, which survived as well.
    let shown = place.run(&["digest"]);
    let needs = shown.find("Needs you").unwrap_or_else(|| panic!("{shown}"));
    assert!(needs < shown.find("plan: created by person").unwrap(), "{shown}");
    let again = place.run(&["digest"]);
    assert!(again.contains("is blocked: Which one?"), "it still is: {again}");
    assert!(!again.contains("plan: created"), "that was told: {again}");
    let all: Value =
        serde_json::from_str(&place.run(&["digest", "--since", "1", "--json"])).unwrap();
    assert_eq!(all["since"], 1);
    assert!(place.run(&["digest", "--since", "1h"]).contains("plan: created by person"));
}

#[test]
fn only_a_person_decides_what_a_person_has_seen() {
    let (place, server, _tools, id) = asking();
    let folder = place.state().file("agents").join(&id);
    let token = std::fs::read_to_string(folder.join("identity")).unwrap();
    let mut agent = ToolClient::at(&server.socket());
    agent.peer.greet(token.trim(), None);
    agent.refused("not_owner", NoteLooked::NAME, json!({"viewer": "tui"}));
    // To read is free, and changes nothing.
    assert!(agent.ok(ReadDigest::NAME, json!({"viewer": "tui"}))["next"].is_u64());
    assert!(!place.state().file("viewers.json").exists());
}

#[test]
fn the_tui_shows_what_happened_when_a_person_returns() {
    let (place, server, mut tools, id) = asking();
    // A person looked an hour ago.
    let last = tools.ok("get_events", json!({"limit": 1}))["events"][0].clone();
    let long_ago = parse_time(last["time"].as_str().unwrap()).unwrap() - HOUR_MS;
    let looked = json!({"viewer": "tui", "shown": [2, format_time(long_ago)]});
    tools.ok(NoteLooked::NAME, looked);
    ask(&mut tools, &server, &id, false);
    let mut screen = Screen::new(&place, 100, 30);
    screen.patterm("");
    let shown = screen.until("while you were away (1 h)");
    assert!(shown.contains("Needs you") && shown.contains("is blocked: Which one?"), "{shown}");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("while you were away ("));
    // That was seen, which is stored.
    until("the place is stored", || {
        let file = place.state().file("viewers.json");
        let viewers: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        (viewers["viewers"]["tui"]["next"].as_u64()? > 2).then_some(())
    });
    screen.lead("c");
    screen.until("prompt$");
    screen.lead("W");
    screen.until("while you were away (1 h)");
    screen.press(&["Enter"]);
    screen.until_it(|shown| !shown.contains("while you were away (") && shown.contains("2. Blue"));
    screen.lead("d");
    screen.until("detached; everything keeps running");
}
