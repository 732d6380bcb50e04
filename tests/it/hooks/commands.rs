//! Hooks that run commands.

use serde_json::{Value, json};

use super::{configure, events, exit_once, hook_until, lines};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, alive, until};

#[test]
fn a_command_that_hangs_is_killed_with_its_children_and_delays_no_other_hook() {
    let place = Place::new();
    let hangs = "echo $$ >>pids; sleep 1000 & echo $! >>pids; setsid sh -c 'echo $$ >>pids; sleep 1000' & wait";
    configure(
        &place,
        &format!(
            "[[hooks]]\nname = 'hangs'\non = ['process.exited']\nrun = ['sh', '-c', \"{hangs}\"]\n\
             timeout_seconds = 5\n\
             [[hooks]]\nname = 'works'\non = ['process.*']\nrun = ['sh', '-c', 'cat >>got']\n"
        ),
    );
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    exit_once(&mut tools);
    let got = place.path("project/got");
    let exited = until("the other hook", || {
        // The last line may not be complete yet.
        let parsed =
            lines(&got).into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        parsed.into_iter().find(|event| event["type"] == "process.exited")
    });
    assert_eq!(
        (&exited["data"]["code"], &exited["summary"]),
        (&json!(0), &json!("true exited with code 0"))
    );
    let failed = hook_until(&mut tools, "hangs", |hook| hook["failures"] == 1);
    assert_eq!(failed["last_error"], "its command did not end within 5 s");
    let pids = lines(&place.path("project/pids"));
    assert_eq!(pids.len(), 3, "{pids:?}");
    for pid in pids {
        until("its end", || (!alive(pid.parse().unwrap())).then_some(()));
    }
    // A second failure is not reported again.
    exit_once(&mut tools);
    hook_until(&mut tools, "hangs", |hook| hook["failures"] == 2);
    let reports = events(&mut tools, "hook.failed");
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(reports[0]["data"]["hook"], "hangs");
    let works = hook_until(&mut tools, "works", |hook| hook["waiting"] == 0);
    assert_eq!((&works["failures"], &works["dropped"]), (&json!(0), &json!(0)));
}

/// For how many events a hook was started. A command that ended in the moment of the server's death counts as failed.
fn handled(hook: &Value) -> u64 {
    hook["fired"].as_u64().unwrap() + hook["failures"].as_u64().unwrap()
}

#[test]
fn a_hook_continues_where_it_was_after_the_server_is_killed() {
    let place = Place::new();
    let script = "echo \\\"$PATTERM_EVENT_SEQ\\\" >>got";
    configure(
        &place,
        &format!(
            "[[hooks]]\nname = 'notes'\non = ['process.exited']\nrun = ['sh', '-c', \"{script}\"]\n"
        ),
    );
    let mut server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    for round in 1..=3_u64 {
        exit_once(&mut tools);
        let go = format!("go-{round}");
        let id = tools.sh(&format!("until [ -e {go} ]; do sleep 0.05; done"));
        hook_until(&mut tools, "notes", |hook| handled(hook) == 2 * round - 1);
        server.kill();
        std::fs::write(place.path("project").join(go), "").unwrap();
        server = place.serve();
        tools = ToolClient::at(&server.socket());
        tools.ended(&id);
        hook_until(&mut tools, "notes", |hook| handled(hook) == 2 * round);
    }
    let exits: Vec<_> =
        events(&mut tools, "process.exited").iter().map(|e| e["seq"].to_string()).collect();
    assert_eq!(exits.len(), 6);
    assert_eq!(lines(&place.path("project/got")), exits);
}

#[test]
fn hostile_texts_reach_a_command_as_single_harmless_arguments() {
    let place = Place::new();
    configure(
        &place,
        r#"
        [[hooks]]
        on = ["attention.raised"]
        name = "args"
        run = ["sh", "-c", "cat >event; printf '<%s>' \"$@\" >args", "x", "--", "{summary}", "{type}"]
        [[hooks]]
        on = ["attention.raised"]
        name = "refused"
        run = ["sh", "-c", "touch marker", "{summary}"]
        "#,
    );
    let server = place.serve_in_process();
    let (process, token) = server.agent("-e", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let reason = "$(touch marker) `touch marker`; touch marker '\" \u{202e}x";
    let request = json!({ "process_id": process.id.as_str(), "reason": reason });
    agent.ok("request_human_attention", request);
    let mut tools = ToolClient::of(&server);
    hook_until(&mut tools, "args", |hook| hook["fired"] == 1);
    let arguments = std::fs::read_to_string(place.path("project/args")).unwrap();
    let shown = "-e needs attention: $(touch marker) `touch marker`; touch marker '\" \\u{202e}x";
    assert_eq!(arguments, format!("<--><{shown}><attention.raised>"));
    let event = std::fs::read_to_string(place.path("project/event")).unwrap();
    assert!(!event.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{event}");
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["data"]["reason"], reason);
    let refused = hook_until(&mut tools, "refused", |hook| hook["failures"] == 1);
    assert!(refused["last_error"].as_str().unwrap().contains("begins with `-`"), "{refused}");
    assert!(!place.path("project/marker").exists());
}
