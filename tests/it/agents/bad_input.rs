//! Errors with agents and messages, with a fake agent: each is reported, and nothing is left behind
//! or typed in the wrong place.

use serde_json::json;

use super::fake::{Fake, settle};
use crate::support::tool_client::ToolClient;

#[test]
fn presets_that_cannot_be_started_are_named_and_leave_nothing_behind() {
    let mut fake = Fake::new();
    settle(&mut fake.place, "[agents.wrong]\nlike = \"fake\"\nsettle = \"soon\"\n");
    let spawn = |preset: &str| json!({"agent": preset, "agent_instructions": "begin"});
    for (kind, preset, words) in [
        ("invalid_argument", "nobody", "the presets are claude, codex"),
        ("unavailable", "missing", "`no-such-program` was not found on PATH"),
        ("unavailable", "wrong", "settle"),
        ("invalid_argument", "", "which is not a preset"),
    ] {
        let message = fake.tools.refused(kind, "spawn_agent", spawn(preset));
        assert!(message.contains(words), "{preset}: {message}");
    }
    let empty = json!({"agent": "fake", "agent_instructions": "\u{1b} "});
    fake.tools.refused("invalid_argument", "spawn_agent", empty);
    assert_eq!(fake.tools.ids(), Vec::<String>::new());
    let agents = fake.tools.ok("list_agents", json!({}))["agents"].take();
    let found = |name: &str| {
        let all = agents.as_array().unwrap().iter();
        all.clone().find(|agent| agent["agent"] == name).unwrap()["found"].clone()
    };
    assert_eq!(
        (found("fake"), found("missing"), found("wrong")),
        (true.into(), false.into(), false.into())
    );
}

/// An agent that accepts turns only when idle counts as working until it has its first instructions:
/// they used to wait for themselves.
#[test]
fn first_instructions_do_not_wait_for_themselves() {
    let mut fake = Fake::new();
    fake.tools.ok("spawn_agent", json!({"agent": "fake", "agent_instructions": "begin"}));
    assert_eq!(fake.until_turns(1), ["begin"]);
}

#[test]
fn an_agent_that_exits_at_once_is_reported_with_its_instructions() {
    let mut fake = Fake::new();
    let answer = fake.tools.ok("spawn_agent", json!({"agent": "ends", "agent_instructions": "go"}));
    let id = answer["process_id"].as_str().unwrap().to_owned();
    let status = fake.tools.ended(&id);
    assert_eq!(status["exit"]["code"], 3, "{status}");
    fake.until_receipt(1, "queued", "is not running");
    let message = json!({"target_process_id": id, "message": "hello"});
    fake.tools.refused("not_running", "send_message", message);
    fake.tools.close(&id);
    let receipt = fake.until_receipt(1, "stalled", "");
    assert!(receipt.evidence.contains("closed"), "{receipt:?}");
    assert_eq!(fake.turns(), Vec::<String>::new());
}

#[test]
fn a_text_that_a_cli_lost_is_pasted_again_and_accepted_once() {
    let mut fake = Fake::new();
    let id = fake.spawn("drops");
    let receipt = fake.send(&id, "hold on");
    let receipt = fake.until_receipt(receipt.message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] hold on"], "{receipt:?}");
    fake.send(&id, "and this");
    assert_eq!(fake.until_turns(2), ["[external] hold on", "[external] and this"]);
}

#[test]
fn a_text_that_a_slow_cli_shows_twice_is_erased_and_submitted_once() {
    let mut fake = Fake::new();
    let id = fake.spawn("late");
    let message = fake.send(&id, "hold on").message;
    fake.until_receipt(message, "delivered", "");
    assert_eq!(fake.turns(), ["[external] hold on"]);
}

#[test]
fn nothing_is_typed_into_an_agent_that_never_becomes_ready() {
    let mut fake = Fake::new();
    let id = fake.spawn("never");
    let receipt = fake.send(&id, "are you there?");
    assert_eq!(receipt.state, "queued", "{receipt:?}");
    assert!(receipt.evidence.contains("not ready"), "{receipt:?}");
    let pattern = json!({"process_id": id, "pattern": "there", "timeout_seconds": 1});
    assert_eq!(fake.tools.ok("wait_for_pattern", pattern)["timed_out"], true);
    fake.tools.close(&id);
    fake.until_receipt(receipt.message, "stalled", "closed");
}

#[test]
fn control_bytes_do_not_reach_the_keyboard() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let receipt = fake.send(&id, "a\u{1b}[201~b\u{3}c\rd\r\ne\u{9b}201~f\u{7f}g");
    assert_eq!(receipt.state, "delivered", "{receipt:?}");
    assert_eq!(fake.until_turns(1), ["[external] a[201~bc\nd\ne201~fg"]);
    for nothing in ["", " \n", "\u{1b}\u{3}"] {
        let arguments = json!({"target_process_id": id, "message": nothing});
        fake.tools.refused("invalid_argument", "send_message", arguments);
    }
    let huge = json!({"target_process_id": id, "message": "x".repeat(5 << 20)});
    fake.tools.refused("limit", "send_message", huge);
}

#[test]
fn messages_go_only_to_other_running_agents() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let cat = fake.tools.run(&["cat"]);
    let to = |id: &str| json!({"target_process_id": id, "message": "hello"});
    let message = fake.tools.refused("invalid_argument", "send_message", to(&cat));
    assert!(message.contains("send_input"), "{message}");
    fake.tools.refused("not_found", "send_message", to("p99"));
    let mut itself = as_agent(&fake, &id);
    assert!(
        itself.refused("invalid_argument", "send_message", to(&id)).contains("your own process")
    );
    fake.tools.close(&id);
    fake.tools.refused("not_found", "send_message", to(&id));
}

/// A client with the identity of an agent, as its CLI has.
fn as_agent(fake: &Fake, id: &str) -> ToolClient {
    let file = fake.place.state().file("agents").join(id).join("identity");
    let token = std::fs::read_to_string(file).unwrap();
    let mut tools = ToolClient::at(&fake.server.socket());
    tools.peer.greet(token.trim(), None);
    tools
}

#[test]
fn tags_name_the_sender_of_a_message() {
    let mut fake = Fake::new();
    let top = fake.spawn_ready();
    let mut lead = as_agent(&fake, &top);
    let spawn = |name: &str| json!({"agent": "fake", "name": name});
    let [one, two] = ["o]n[e", "two"].map(|name| {
        let answer = lead.ok("spawn_agent", spawn(name));
        answer["process_id"].as_str().unwrap().to_owned()
    });
    fake.until_state(&one, "idle");
    fake.until_state(&two, "idle");
    let mut below = as_agent(&fake, &one);
    let say = |to: &str, message: &str| json!({"target_process_id": to, "message": message});
    lead.ok("send_message", say(&one, "down"));
    below.ok("send_message", say(&top, "up"));
    below.ok("send_message", say(&two, "aside"));
    let expected = ["[orchestrator] down", "[sub-agent:o)n(e] up", "[agent:o)n(e] aside"];
    assert_eq!(fake.until_turns(3), expected);
}

#[test]
fn messages_waiting_for_a_closed_agent_are_reported_as_stalled() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    assert_eq!(fake.send(&id, "work never-made").state, "delivered");
    fake.until_state(&id, "working");
    let receipts = ["one", "two"].map(|text| fake.send(&id, text));
    for receipt in &receipts {
        assert_eq!(receipt.state, "queued", "{receipt:?}");
    }
    fake.tools.close(&id);
    for receipt in &receipts {
        fake.until_receipt(receipt.message, "stalled", "closed");
    }
    assert_eq!(fake.turns(), ["[external] work never-made"]);
}

#[test]
fn a_message_held_back_by_a_dialog_arrives_after_its_answer() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    fake.send(&id, "ask");
    fake.until_state(&id, "blocked");
    let receipts = ["one", "two"].map(|text| fake.send(&id, text));
    for receipt in &receipts {
        assert_eq!(receipt.state, "queued", "{receipt:?}");
    }
    fake.tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "y"}));
    let turns = ["[external] ask", "[external] one", "[external] two"];
    assert_eq!(fake.until_turns(3), turns);
    for receipt in &receipts {
        fake.until_receipt(receipt.message, "delivered", "");
    }
}

#[test]
fn the_number_and_depth_of_agents_are_limited() {
    let mut fake = Fake::with_limits("agents=3,agent_depth=1");
    let top = fake.spawn_ready();
    let mut lead = as_agent(&fake, &top);
    let spawn = json!({"agent": "fake"});
    let answer = lead.ok("spawn_agent", spawn.clone());
    let below = answer["process_id"].as_str().unwrap().to_owned();
    let mut sub = as_agent(&fake, &below);
    let message = sub.refused("limit", "spawn_agent", spawn.clone());
    assert!(message.contains("nested at most 1 deep"), "{message}");
    let third = fake.spawn("fake");
    let message = fake.tools.refused("limit", "spawn_agent", spawn.clone());
    assert!(message.contains("3 agents are already running"), "{message}");
    assert_eq!(fake.tools.ids(), [top.clone(), below, third.clone()]);
    fake.tools.close(&third);
    fake.spawn("fake");
    // Closing one closes those below it.
    assert_eq!(fake.tools.close(&top).len(), 2);
}

#[test]
fn the_sender_of_a_queued_message_is_told_at_once_why_it_waits() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let work = work(&fake);
    assert_eq!(fake.send(&id, &work).state, "delivered");
    fake.until_state(&id, "working");
    let receipts = ["one", "two", "three"].map(|text| fake.send(&id, text));
    for (receipt, words) in
        receipts.iter().zip(["", "queued behind another text", "queued behind 2 other texts"])
    {
        assert_eq!(receipt.state, "queued", "{receipt:?}");
        let evidence = &receipt.evidence;
        assert!(evidence.starts_with(words) && evidence.contains("it is working"), "{receipt:?}");
    }
    std::fs::write(fake.place.path("done"), "").unwrap();
    let expected = [work.as_str(), "one", "two", "three"].map(|text| format!("[external] {text}"));
    assert_eq!(fake.until_turns(4), expected);
}

/// A turn that lasts until there is a file `done` in the place.
fn work(fake: &Fake) -> String {
    format!("work {}", fake.place.path("done").display())
}

#[test]
fn a_queued_message_is_withdrawn_or_replaced_only_by_its_sender() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let other = fake.spawn_ready();
    let work = work(&fake);
    let begun = fake.send(&id, &work);
    fake.until_state(&id, "working");
    let [kept, withdrawn, replaced] =
        ["one", "two", "three"].map(|text| fake.send(&id, text).message);
    let cancel = |message: u64| json!({"message_id": message});
    let mut stranger = as_agent(&fake, &other);
    stranger.refused("not_owner", "message_cancel", cancel(kept));
    let answer = fake.tools.ok("message_cancel", cancel(withdrawn));
    assert_eq!(answer["receipt"]["state"], "stalled", "{answer}");
    let replacement = json!({"message_id": replaced, "replacement": "four"});
    assert_eq!(fake.tools.ok("message_cancel", replacement)["excerpt"], "[external] four");
    for (message, words) in [(begun.message, "send another"), (withdrawn, "withdrew")] {
        let why = fake.tools.refused("conflict", "message_cancel", cancel(message));
        assert!(why.contains(words), "{why}");
    }
    fake.tools.refused("not_found", "message_cancel", cancel(99));
    fake.tools.refused("not_found", "message_status", cancel(99));
    // The limit also applies to the next server.
    fake.server.kill();
    let server = fake.place.serve();
    fake.tools = ToolClient::at(&server.socket());
    std::fs::write(fake.place.path("done"), "").unwrap();
    let expected = [work.as_str(), "one", "four"].map(|text| format!("[external] {text}"));
    assert_eq!(fake.until_turns(3), expected);
    fake.until_receipt(replaced, "delivered", "");
    let status = fake.tools.ok("message_status", cancel(withdrawn));
    assert_eq!(status["receipt"]["state"], "stalled", "{status}");
    assert_eq!(fake.turns().len(), 3);
}

/// A preset with only a program.
#[test]
fn a_generic_agent_gets_its_first_instructions_and_nothing_in_the_middle_of_a_draft() {
    let mut fake = Fake::new();
    let spawned =
        fake.tools.ok("spawn_agent", json!({"agent": "plain", "agent_instructions": "begin"}));
    let id = spawned["process_id"].as_str().unwrap().to_owned();
    assert_eq!(fake.until_turns(1), ["begin"]);
    fake.until_state(&id, "idle");
    let draft = json!({"process_id": id, "kind": "text", "text": "half a "});
    fake.tools.ok("send_input", draft);
    fake.until_state(&id, "idle");
    let receipt = fake.send(&id, "hello");
    assert_eq!(receipt.state, "queued", "{receipt:?}");
    assert!(receipt.evidence.contains("not submitted yet"), "{receipt:?}");
    // The next server knows the draft too, and the one after it sees that it is gone.
    fake.server.kill();
    let server = fake.place.serve();
    fake.tools = ToolClient::at(&server.socket());
    fake.until_receipt(receipt.message, "queued", "not submitted yet");
    fake.until_state(&id, "idle");
    let rest = json!({"process_id": id, "kind": "text", "text": "thought", "submit": true});
    fake.tools.ok("send_input", rest);
    assert_eq!(fake.until_turns(3), ["begin", "half a thought", "[external] hello"]);
    server.kill();
    let server = fake.place.serve();
    fake.tools = ToolClient::at(&server.socket());
    fake.send(&id, "again");
    assert_eq!(fake.until_turns(4)[3], "[external] again");
}

#[test]
fn an_agent_with_a_message_on_its_way_is_not_idle_for_timers() {
    let mut fake = Fake::new();
    let id = fake.spawn_ready();
    let owner = fake.spawn_ready();
    let draft = json!({"process_id": id, "kind": "text", "text": "half a "});
    fake.tools.ok("send_input", draft);
    fake.until_state(&id, "idle");
    let queued = fake.send(&id, "hello");
    assert_eq!(queued.state, "queued", "{queued:?}");
    let arm = |body: &str| json!({"watched": [id], "body": body, "owner_process_id": owner});
    let armed = fake.tools.ok("timer_fire_when_idle_all", arm("all idle"));
    assert_eq!(armed["waiting_on"], json!([id]), "{armed}");
    let rest = json!({"process_id": id, "kind": "text", "text": "thought", "submit": true});
    fake.tools.ok("send_input", rest);
    let turns = fake.until_turns(3);
    assert_eq!(turns[..2], ["half a thought", "[external] hello"], "{turns:?}");
    assert!(turns[2].ends_with("all idle"), "{turns:?}");
}
