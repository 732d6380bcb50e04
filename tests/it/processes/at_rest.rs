//! Whether a program works, waits for input, or shows neither: silence alone is not idle.

use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use serde_json::json;

use super::survival::{desk_of, kill};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, id_of, tools, until};

/// Node may take half of this to start on a busy machine, and a program that shows nothing is
/// checked every ten seconds.
const CEILING: Duration = Duration::from_secs(90);

/// Waits until a process is in a state, with a reason that contains these words.
#[track_caller]
fn until_state(tools: &mut ToolClient, id: &str, state: &str, words: &str) {
    let began = Instant::now();
    loop {
        let activity = tools.status(id)["activity"].take();
        let reason = activity["reason"].as_str().unwrap_or_default();
        if activity["state"] == state && reason.contains(words) {
            return;
        }
        assert!(began.elapsed() < CEILING, "{id} is not {state} ({words}): {activity}");
        // Without a pause the server would be busy with these requests only.
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }));
    }
}

fn shell(tools: &mut ToolClient) -> String {
    id_of(&tools.ok("spawn_process", json!({"shell": true})))
}

const BURNS: &str = "while :; do :; done";

#[test]
fn a_silent_program_is_not_idle_unless_it_waits_for_input() {
    let (_place, _server, mut tools) = tools();
    let sleeps = tools.sh("sleep 1000");
    let burns = tools.sh(BURNS);
    let asks = tools.run(&["cat"]);
    let selects = tools.run(&["python3", "-q"]);
    let polls = tools.run(&[
        "python3",
        "-c",
        "
import select, sys
poll = select.poll()
poll.register(sys.stdin, select.POLLIN)
poll.poll()",
    ]);
    let epolls = tools.run(&["node", "-e", "process.stdin.on('data', () => {})"]);
    let serves = tools.run(&["python3", "-m", "http.server", "0"]);
    for id in [&asks, &selects, &polls, &epolls] {
        until_state(&mut tools, id, "idle", "it waits for input");
    }
    until_state(&mut tools, &sleeps, "unknown", "does not appear to wait for input");
    until_state(&mut tools, &burns, "working", "uses CPU");
    until_state(&mut tools, &serves, "unknown", "does not appear to wait for input");
    let arm = json!({"watched": [sleeps], "body": "b", "owner_process_id": asks});
    let note = tools.ok("timer_fire_when_idle_all", arm)["note"].take();
    let words = format!("whether {sleeps} is working");
    let note = note.as_str().unwrap();
    assert!(note.contains(&words) && note.contains("give max_wait_seconds"), "{note}");
}

#[test]
fn a_shell_is_idle_at_its_prompt_unless_one_of_its_jobs_is_working() {
    let (_place, _server, mut tools) = tools();
    let id = shell(&mut tools);
    until_state(&mut tools, &id, "idle", "waits at its prompt");
    tools.line(&id, "(while :; do :; done) &");
    until_state(&mut tools, &id, "working", "a background job uses CPU");
    tools.line(&id, "kill %1; wait");
    until_state(&mut tools, &id, "idle", "waits at its prompt");
    tools.line(&id, "sleep 1000");
    until_state(&mut tools, &id, "working", "`sleep` runs in its foreground");
    tools.key(&id, "ctrl+c");
    tools.line(&id, "cat");
    until_state(&mut tools, &id, "idle", "`cat` waits for input");
}

#[test]
fn a_process_that_was_idle_before_the_server_died_does_not_become_idle_again() {
    let place = Place::new();
    let (mut tools, server) = desk_of(&place);
    let watched = [tools.run(&["cat"]), shell(&mut tools)];
    let owner = tools.run(&["cat"]);
    for id in &watched {
        until_state(&mut tools, id, "idle", "");
    }
    let arm = json!({"watched": watched, "body": "wake up", "owner_process_id": owner});
    let armed = tools.ok("timer_fire_when_idle_any", arm);
    assert_eq!(armed["already_idle"], json!(watched), "{armed}");
    kill(&server);
    let (mut tools, _) = desk_of(&place);
    for id in &watched {
        until_state(&mut tools, id, "idle", "");
        until("it is idle for long enough", || {
            let state = json!({"process_ids": [id], "until": "idle", "timeout_seconds": 30});
            (tools.ok("wait_for_agents", state)["timed_out"] == false).then_some(())
        });
    }
    let timers = tools.ok("timer_list", json!({}))["timers"].take();
    assert_eq!(timers.as_array().unwrap().len(), 1, "nothing had worked: {timers}");
    tools.line(&watched[1], "true");
    tools.wait(&owner, "wake up");
}

#[test]
fn the_line_of_an_idle_timer_is_not_typed_into_a_shell() {
    let (place, _server, mut tools) = tools();
    let owner = shell(&mut tools);
    let made = place.path("made");
    let name = format!("; touch {}; #", made.display());
    let argv = json!({"argv": ["sleep", "1000"], "name": name});
    let watched = id_of(&tools.ok("spawn_process", argv));
    let arm = json!({"watched": [watched], "body": "echo fired $((1 + 1))",
        "owner_process_id": owner, "max_wait_seconds": 0.1});
    tools.ok("timer_fire_when_idle_all", arm);
    tools.wait(&owner, "fired 2");
    assert!(!made.exists());
    let shown = tools.raw(&owner);
    assert!(!shown.contains("[system]"), "{shown}");
}

#[test]
fn a_timer_fires_when_all_have_ended_and_says_how() {
    let place = Place::new();
    let (mut tools, server) = desk_of(&place);
    let owner = tools.run(&["cat"]);
    let fails = tools.sh("read x; exit 7");
    let rests = tools.run(&["cat"]);
    let arm = json!({"watched": [fails, rests], "body": "done", "owner_process_id": owner});
    let armed = tools.ok("timer_fire_on_exit", arm);
    assert_eq!(armed["waiting_on"], json!([fails, rests]), "{armed}");
    assert_eq!(tools.ok("timer_list", json!({}))["timers"][0]["kind"], "exit");
    tools.line(&fails, "");
    tools.ended(&fails);
    kill(&server);
    let (mut tools, _) = desk_of(&place);
    until_state(&mut tools, &rests, "idle", "it waits for input");
    assert_eq!(tools.ok("timer_list", json!({}))["timers"].as_array().unwrap().len(), 1);
    tools.key(&rests, "ctrl+d");
    tools.wait(&owner, "done");
}
