//! Waiting for a pattern: it is found wherever it appears, and every end of the wait is reported.

use patterm_store::limits::Limits;
use serde_json::{Value, json};

use crate::support::Place;
use crate::support::tool_client::{ToolClient, tools, until};

fn waiting(id: &str, pattern: &str, seconds: f64) -> Value {
    json!({"process_id": id, "pattern": pattern, "timeout_seconds": seconds})
}

#[test]
fn text_on_the_screen_matches_at_once() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("echo ready in 312 ms; exec cat");
    tools.wait(&id, "ready");
    let answer = tools.ok("wait_for_pattern", waiting(&id, r"ready in \d+", 0.0));
    assert_eq!((&answer["matched"], &answer["line"]), (&json!(true), &json!("ready in 312 ms")));
    assert_eq!((&answer["timed_out"], &answer["exited"]), (&json!(false), &json!(false)));
    assert!(answer["elapsed_ms"].is_u64());
}

#[test]
fn a_timeout_is_an_answer() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    let answer = tools.ok("wait_for_pattern", waiting(&id, "never", 0.05));
    assert_eq!((&answer["matched"], &answer["timed_out"]), (&json!(false), &json!(true)));
    assert!(answer["elapsed_ms"].as_u64().unwrap() >= 50 && answer.get("line").is_none());
    for seconds in [json!(-1), json!(1e9), json!("1")] {
        let mut arguments = waiting(&id, "x", 1.0);
        arguments["timeout_seconds"] = seconds;
        tools.refused("invalid_argument", "wait_for_pattern", arguments);
    }
}

#[test]
fn the_exit_of_the_process_ends_the_wait_and_is_already_known() {
    let (_place, server, mut tools) = tools();
    let mut other = ToolClient::of(&server);
    for _ in 0..10 {
        let id = tools.sh("read x; exit 4");
        tools.ask("wait_for_pattern", waiting(&id, "never", 20.0));
        other.line(&id, "go");
        let answer = tools.receive().unwrap();
        assert_eq!((&answer["exited"], &answer["matched"]), (&json!(true), &json!(false)));
        let status = tools.status(&id);
        assert_eq!((&status["status"], &status["exit"]), (&json!("exited"), &json!({"code": 4})));
        assert_eq!(tools.ok("wait_for_pattern", waiting(&id, "never", 20.0))["exited"], true);
        let last = tools.ok("wait_for_pattern", waiting(&id, "go", 20.0));
        assert_eq!(last["matched"], true, "what is on the screen of an ended process matches");
    }
}

/// Waits with one client while another makes the program print; returns the line.
fn seen(before: &str, after: &str, pattern: &str) -> String {
    let (_place, server, mut tools) = tools();
    let mut other = ToolClient::of(&server);
    let id = other
        .sh(&format!("stty -echo; {before} printf '\\033]2;up\\007'; read x; {after}; exec cat"));
    until("it reads", || (other.status(&id)["title"] == "up").then_some(()));
    tools.ask("wait_for_pattern", waiting(&id, pattern, 20.0));
    // Answered after the wait began: both are served by one thread, in order.
    tools.ask("whoami", json!({}));
    tools.receive().unwrap();
    other.line(&id, "");
    let answer = tools.receive().unwrap();
    assert_eq!(answer["matched"], true, "{answer}");
    answer["line"].as_str().unwrap().to_owned()
}

#[test]
fn text_that_comes_later_matches() {
    assert_eq!(seen("", "echo at last", "at la"), "at last");
}

#[test]
fn text_split_across_reads_matches() {
    let after = "for part in ne ed le; do printf $part; sleep 0.05; done";
    assert_eq!(seen("", after, "^needle$"), "needle");
}

#[test]
fn lines_that_the_terminal_wrapped_are_one() {
    let wide = "x".repeat(79);
    let line = format!("{wide}needle");
    assert_eq!(seen("", &format!("echo {line}"), "^x+needle$"), line);
}

#[test]
fn text_that_scrolls_by_in_a_flood_matches() {
    assert_eq!(seen("", "echo NEEDLE; seq 1 300000", "^NEEDLE$"), "NEEDLE");
}

#[test]
fn a_line_begun_before_the_wait_and_ended_in_a_flood_matches() {
    let line = seen("printf 'half of ';", "printf 'a line\\n'; seq 1 300000", "^half of a line$");
    assert_eq!(line, "half of a line");
}

#[test]
fn text_drawn_without_line_ends_matches() {
    let line = seen("", "printf '\\033[2J\\033[5;10Hplaced'; seq 1 100000", "placed");
    assert!(line.trim().starts_with("placed"), "{line}");
}

#[test]
fn only_the_scrollback_scope_matches_lines_that_scrolled_away() {
    let (_place, _server, mut tools) = tools();
    let id = tools.sh("echo NEEDLE; seq 1 100; echo end; exec cat");
    tools.wait(&id, "^end$");
    let mut arguments = waiting(&id, "NEEDLE", 0.05);
    assert_eq!(tools.ok("wait_for_pattern", arguments.clone())["timed_out"], true);
    arguments["scope"] = json!("scrollback");
    assert_eq!(tools.ok("wait_for_pattern", arguments)["line"], "NEEDLE");
}

/// Text that the matcher read for another waiter may contain lines that scrolled away before this
/// one began.
#[test]
fn lines_that_scrolled_away_before_the_wait_do_not_match_because_others_wait() {
    let (_place, server, mut tools) = tools();
    let mut other = ToolClient::of(&server);
    for _ in 0..20 {
        let id = tools.sh("stty -echo; read x; echo NEEDLE; seq 1 2000; echo end; exec cat");
        other.ask("wait_for_pattern", waiting(&id, "^end$", 20.0));
        tools.line(&id, "");
        until("it is past", || {
            let offset = tools.status(&id)["output_offset"].as_u64().unwrap();
            (offset > 2_000).then_some(())
        });
        let rows = tools.rows(&id);
        let gone = rows.len() > 20 && !rows.contains(&"NEEDLE".to_owned());
        let answer = tools.ok("wait_for_pattern", waiting(&id, "NEEDLE", 0.02));
        assert!(!gone || answer["matched"] == false, "{answer}");
        assert_eq!(other.receive().unwrap()["matched"], true);
        tools.close(&id);
    }
}

#[test]
fn a_cancelled_wait_ends_and_the_limit_of_waits_is_reported() {
    let place = Place::new();
    let server = place.serve_with(Limits { waiters: 1, ..Limits::default() });
    let mut tools = ToolClient::of(&server);
    let id = tools.run(&["cat"]);
    let call = tools.ask("wait_for_pattern", waiting(&id, "never", 60.0));
    let message = tools.refused("limit", "wait_for_pattern", waiting(&id, "never", 0.0));
    assert!(message.contains("limit of 1 calls waiting for p1"), "{message}");
    tools.peer.notify("notifications/cancelled", json!({"requestId": call}));
    until("its place is free", || tools.call("wait_for_pattern", waiting(&id, "never", 0.0)).ok());
    // A client that disconnects frees its place, too.
    let mut gone = ToolClient::of(&server);
    gone.ask("wait_for_pattern", waiting(&id, "never", 60.0));
    gone.ask("whoami", json!({}));
    gone.receive().unwrap();
    drop(gone);
    until("its place is free", || tools.call("wait_for_pattern", waiting(&id, "never", 0.0)).ok());
}

#[test]
fn calls_that_wait_for_agents_are_limited_too() {
    let place = Place::new();
    let server = place.serve_with(Limits { waiters: 1, ..Limits::default() });
    let mut tools = ToolClient::of(&server);
    let id = tools.run(&["cat"]);
    let wait = |seconds: u32| {
        json!({"process_ids": [id], "until": "exited",
        "timeout_seconds": seconds})
    };
    let call = tools.ask("wait_for_agents", wait(60));
    let message = tools.refused("limit", "wait_for_agents", wait(0));
    assert!(message.contains("limit of 1 calls waiting for agents"), "{message}");
    tools.peer.notify("notifications/cancelled", json!({"requestId": call}));
    until("its place is free", || tools.call("wait_for_agents", wait(0)).ok());
}

#[test]
fn progress_is_reported_if_the_client_sent_a_token() {
    let (_place, _server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    let params = json!({"name": "wait_for_pattern", "arguments": waiting(&id, "never", 0.2),
        "_meta": {"progressToken": "t1"}});
    tools.peer.ask("call", "tools/call", params);
    let report = tools.peer.receive();
    assert_eq!(report["method"], "notifications/progress");
    assert_eq!(report["params"]["progressToken"], "t1");
    assert_eq!(tools.peer.receive()["result"]["structuredContent"]["timed_out"], true);
}

/// They read behind the parser: the flood continues, and each finds its own line.
#[test]
fn a_thousand_waiters_on_a_flood_are_all_answered() {
    let (_place, server, mut tools) = tools();
    let mut other = ToolClient::of(&server);
    let id = other.sh("stty -echo; read x; seq 1 200000; exec cat");
    let numbers: Vec<u64> = (1..=1_000).map(|n| n * 190).collect();
    for number in &numbers {
        tools.ask("wait_for_pattern", waiting(&id, &format!("^{number}$"), 60.0));
    }
    tools.ask("whoami", json!({}));
    tools.receive().unwrap();
    other.line(&id, "");
    let mut lines: Vec<u64> = numbers
        .iter()
        .map(|_| tools.receive().unwrap()["line"].as_str().unwrap().parse().unwrap())
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, numbers);
}
