//! Usage limits: an agent that reached one is `limited`, not idle, and attention is requested.

use serde_json::json;

use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, Cli, GEMINI, OPENCODE};
use super::report::row;
use crate::support::tool_client::long;

/// A usage limit that ends in an hour, and a turn after it.
pub(super) fn usage(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let cat = bench.tools.run(&["cat"]);
    let times = if long() { 5 } else { 1 };
    let mut shown = String::new();
    for time in 0..times {
        let body = format!("rest {time}.");
        let timer = json!({"watched": [id], "body": body, "owner_process_id": cat});
        bench.tools.ok("timer_fire_when_idle_any", timer);
        bench.send(&id, &format!("mock: limit usage 3600\nnumber {time}"));
        let activity = bench.until_state(&id, "limited");
        let until = activity["limited_until"].as_str().unwrap_or_default().to_owned();
        // With an API key, gemini is not told when the day of its quota ends.
        assert_eq!(until.is_empty(), cli == GEMINI, "{activity}");
        let attention = bench.tools.status(&id)["attention"]["reason"].take();
        let reason = attention.as_str().unwrap_or_default().to_owned();
        assert!(reason.starts_with("limited"), "{attention}\n{}", bench.story());
        bench.stays_away(&cat, &body, 2.0);
        let all = json!({"watched": [id], "body": "all.", "owner_process_id": cat});
        let armed = bench.tools.ok("timer_fire_when_idle_all", all);
        let note = armed["note"].as_str().unwrap().to_owned();
        assert!(note.contains("is limited") && note.contains(&until), "{note}");
        bench.tools.ok("timer_cancel", json!({"timer_id": armed["timer_id"]}));
        let wait = json!({"process_ids": [id], "timeout_seconds": 0.1});
        let waited = bench.tools.ok("wait_for_agents", wait);
        assert_eq!(waited["waiting_on"][0]["activity"]["state"], "limited", "{waited}");
        let message = format!("mock: say better now\nnumber {time}");
        // It waits within its turn, and accepts messages only when it is idle.
        let early = (cli == OPENCODE).then(|| bench.send(&id, &message));
        if let Some(queued) = &early {
            let waits = queued.evidence.starts_with("it is limited in the middle of a turn");
            assert!(queued.state == "queued" && waits, "{queued:?}\n{}", bench.story());
        }
        // It asks whether to retry, or it waits within its turn.
        match cli {
            GEMINI => bench.key(&id, "2"),
            OPENCODE => (0..cli.escapes).for_each(|_| bench.key(&id, "escape")),
            CLAUDE | CODEX => {}
            other => panic!("{other:?}"),
        }
        let receipt = early.unwrap_or_else(|| bench.send(&id, &message));
        let done = bench.until_done(receipt.message);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
        bench.until_said(&format!("[external] {message}"));
        bench.until_state(&id, "idle");
        no_call(&mut bench, &id);
        bench.tools.wait(&cat, &body.replace('.', "\\."));
        shown = match until.is_empty() {
            true => "no end shown".to_owned(),
            false => format!("until {until}"),
        };
    }
    let found =
        format!("{times} of {times} limited ({shown}), no idle timer fired, next turn works");
    row(cli, "usage limits", &found);
}

#[test]
fn claude_is_limited_while_it_retries_and_its_request_for_attention_is_withdrawn_afterwards() {
    // It names its error at its third attempt.
    retried(CLAUDE, "mock: limit rate 3 4");
}

#[test]
fn codex_is_limited_while_it_retries_and_its_request_for_attention_is_withdrawn_afterwards() {
    retried(CODEX, "mock: limit rate 6 1");
}

#[test]
fn opencode_is_limited_while_it_retries_and_its_request_for_attention_is_withdrawn_afterwards() {
    retried(OPENCODE, "mock: limit usage 8 2");
}

/// A limit at which it retries by itself, within its turn. Gemini does not show that.
fn retried(cli: Cli, limit: &str) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let times = if long() { 5 } else { 1 };
    for time in 0..times {
        let message = format!("{limit} ;; say better now\nnumber {time}");
        bench.send(&id, &message);
        let activity = bench.until_state(&id, "limited");
        assert_eq!(activity["limited_until"].is_string(), cli == OPENCODE, "{activity}");
        bench.until_said(&format!("[external] {message}"));
        bench.until_state(&id, "idle");
        no_call(&mut bench, &id);
    }
    row(cli, "limits it waits for itself", &format!("{times} of {times} limited, then idle"));
}

#[test]
fn a_limit_is_over_after_its_reported_end() {
    let mut bench = Bench::new(CLAUDE);
    let id = bench.spawn_ready();
    let cat = bench.tools.run(&["cat"]);
    bench.send(&id, "mock: limit usage 12");
    bench.until_state(&id, "limited");
    let timer = json!({"watched": [id], "body": "it rests.", "owner_process_id": cat});
    bench.tools.ok("timer_fire_when_idle_any", timer);
    bench.tools.wait(&cat, "it rests\\.");
    let activity = bench.activity(&id);
    let reason = activity["reason"].as_str().unwrap();
    assert!(reason.starts_with("its limit was due to end at "), "{activity}");
    no_call(&mut bench, &id);
}

/// After a limit, the request for attention is withdrawn.
fn no_call(bench: &mut Bench, id: &str) {
    let attention = bench.tools.status(id)["attention"].take();
    assert!(attention.is_null(), "{attention}\n{}", bench.story());
}
