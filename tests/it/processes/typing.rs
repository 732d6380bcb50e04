//! Typing into processes: text, pastes and keys, encoded for the modes that the program enabled.

use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, tools};

/// A program that shows every byte of its input, after it has enabled something.
fn shows(tools: &mut ToolClient, switched_on: &str) -> String {
    let id = tools.sh(&format!("stty raw -echo; printf '{switched_on}ready '; exec cat -vT"));
    tools.wait(&id, "ready");
    id
}

#[track_caller]
fn check(tools: &mut ToolClient, switched_on: &str, input: Value, shown: &str) {
    let id = shows(tools, switched_on);
    let mut arguments = input;
    arguments["process_id"] = json!(id);
    let answer = tools.ok("send_input", arguments.clone());
    assert_eq!(answer["ok"], true);
    let state = &answer["receipt"]["state"];
    let expected = if arguments["submit"] == true { json!("delivered") } else { Value::Null };
    assert_eq!(*state, expected);
    tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "|"}));
    let line = tools.wait(&id, r"\|");
    assert_eq!(line, format!("ready {shown}|"), "{arguments}");
    tools.close(&id);
}

#[test]
fn text_is_typed_as_it_is_and_submitted_with_enter() {
    let (_place, _server, mut tools) = tools();
    check(&mut tools, "", json!({"kind": "text", "text": "hé"}), "hM-CM-)");
    check(&mut tools, "", json!({"kind": "text", "text": "go", "submit": true}), "go^M");
    check(&mut tools, "", json!({"kind": "text", "text": "", "submit": true}), "^M");
    check(&mut tools, "", json!({"kind": "key", "key": "tab", "submit": true}), "^I^M");
}

#[test]
fn a_paste_is_bracketed_when_the_program_asked_for_it() {
    let (_place, _server, mut tools) = tools();
    let block = json!({"kind": "paste", "text": "a\u{1b}[201~b"});
    check(&mut tools, "\\033[?2004h", block, "^[[200~ab^[[201~");
    check(&mut tools, "", json!({"kind": "paste", "text": "ab", "submit": true}), "ab^M");
}

#[test]
fn keys_are_encoded_for_the_modes_in_force() {
    let (_place, _server, mut tools) = tools();
    for (key, shown) in [
        ("enter", "^M"),
        ("escape", "^["),
        ("tab", "^I"),
        ("shift+tab", "^[[Z"),
        ("up", "^[[A"),
        ("ctrl+c", "^C"),
        ("alt+enter", "^[^M"),
        ("f1", "^[OP"),
        ("f12", "^[[24~"),
        ("page-up", "^[[5~"),
        ("delete", "^[[3~"),
        ("ctrl+right", "^[[1;5C"),
        ("backspace", "^?"),
        ("x", "x"),
    ] {
        check(&mut tools, "", json!({"kind": "key", "key": key}), shown);
    }
    check(&mut tools, "\\033[?1h", json!({"kind": "key", "key": "up"}), "^[OA");
    check(&mut tools, "\\033[?1h", json!({"kind": "key", "key": "home"}), "^[OH");
}

#[test]
fn missing_and_unknown_arguments_are_named() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    for (arguments, field) in [
        (json!({}), "kind"),
        (json!({"kind": "text"}), "text"),
        (json!({"kind": "paste"}), "text"),
        (json!({"kind": "key"}), "key"),
        (json!({"kind": "key", "key": "hyper+q"}), "key"),
        (json!({"kind": "mouse"}), "kind"),
        (json!({"kind": "text", "text": "x", "wait_ms": -1}), "wait_ms"),
        (json!({"kind": "text", "text": "x", "tail_mode": "all"}), "tail_mode"),
    ] {
        let mut arguments = arguments;
        arguments["process_id"] = json!(id);
        let message = tools.refused("invalid_argument", "send_input", arguments.clone());
        assert!(message.contains(&format!("`{field}`")), "{arguments}: {message}");
    }
    tools.refused(
        "not_found",
        "send_input",
        json!({"process_id": "p9", "kind": "text", "text": ""}),
    );
}

#[test]
fn the_tail_is_the_output_after_the_input() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("echo before; exec cat");
    tools.wait(&id, "before");
    let mut typed = |text: &str, tail: &str| {
        let arguments = json!({"process_id": id, "kind": "text", "text": text, "submit": true,
            "wait_ms": 300, "tail_mode": tail});
        tools.ok("send_input", arguments)
    };
    let stream = typed("one", "stream");
    assert_eq!(stream["text"], "one\none\n", "{stream}");
    assert_eq!(stream["offset"], 8);
    assert_eq!(stream["next_offset"], 18);
    let grid = typed("two", "grid");
    assert_eq!(grid["rows"][4], "two");
    assert!(grid["screen_version"].is_u64() && grid["cursor"].is_object());
    let receipt = json!({"state": "delivered", "evidence": "typed into its terminal"});
    assert_eq!(typed("three", "none"), json!({"ok": true, "receipt": receipt}));
}

#[test]
fn two_writers_never_mix_their_bytes() {
    let (_place, server, mut tools) = tools();
    let id = shows(&mut tools, "");
    let mut other = ToolClient::of(&server);
    let block = |letter: &str| json!({"process_id": id, "kind": "text", "text": letter.repeat(3_000), "submit": true});
    for _ in 0..10 {
        tools.ask("send_input", block("a"));
        other.ask("send_input", block("b"));
    }
    for _ in 0..10 {
        tools.receive().unwrap();
        other.receive().unwrap();
    }
    tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "|"}));
    tools.wait(&id, r"\|");
    let raw = tools.raw(&id);
    let pieces: Vec<&str> = raw.trim_start_matches("ready ").split("^M").collect();
    assert_eq!(pieces.len(), 21);
    for piece in &pieces[..20] {
        assert!(*piece == "a".repeat(3_000) || *piece == "b".repeat(3_000), "{piece}");
    }
}

#[test]
fn a_program_that_does_not_read_is_reported_in_time() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("stty raw -echo; echo up; exec sleep 1000");
    tools.wait(&id, "up");
    let block = json!({"process_id": id, "kind": "text", "text": "x".repeat(400_000)});
    tools.ok("send_input", block.clone());
    tools.ok("send_input", block.clone());
    let message = tools.refused("limit", "send_input", block);
    assert!(message.contains("is not reading its input"), "{message}");
    tools.close(&id);
}
