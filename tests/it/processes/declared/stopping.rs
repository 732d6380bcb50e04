//! How a declared process is stopped: a signal, a command, the grace period.

use serde_json::json;

use super::{HANGS, id, nothing_hangs, once, trusted, write};
use crate::support::Place;
use crate::support::tool_client::until;

/// Writes the signal that ends it to `got`.
const RECORDS: &str = "trap 'echo int >>got; exit 0' INT; trap 'echo term >>got; exit 0' TERM; \
    echo up; while :; do sleep 0.01; done";

/// A process that records its signals, with this line in the file.
fn records(line: &str) -> String {
    format!("[processes.web]\ncommand = \"{RECORDS}\"\nready = {{ pattern = 'up' }}\n{line}\n")
}

/// Waits until the current run of the process is ready.
fn until_ready(place: &Place) {
    until("ready", || {
        let status = place.run(&["status", "web", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        (status["ready"] == true).then_some(())
    });
}

/// The signals that it got.
fn got(place: &Place) -> String {
    let got = std::fs::read_to_string(place.path("project/got")).unwrap_or_default();
    got.lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_way_to_end_it_uses_its_signal_unless_the_caller_names_one() {
    let place = Place::new();
    write(&place, &records("stop = { signal = 'SIGINT', grace_seconds = 60 }"));
    place.run(&["trust", "--yes"]);
    let start = |arguments: &[&str]| {
        place.run(arguments);
        until_ready(&place);
    };
    start(&["up"]);
    place.run(&["stop", "web"]);
    assert_eq!(got(&place), "int");
    start(&["start", "web"]);
    place.run(&["stop", "web", "--signal", "TERM"]);
    assert_eq!(got(&place), "int term");
    start(&["start", "web"]);
    assert!(place.run(&["restart", "web"]).starts_with("restarted"));
    assert_eq!(got(&place), "int term int");
    until_ready(&place);
    place.run(&["down"]);
    assert_eq!(got(&place), "int term int int");
    start(&["up"]);
    place.run(&["kill"]);
    assert_eq!(got(&place), "int term int int int");
}

#[test]
fn a_program_that_ignores_the_signal_is_killed_after_its_grace_time() {
    let (_place, _server, mut tools) = trusted(
        "[processes.web]\ncommand = \"trap '' INT; echo up; while :; do sleep 0.01; done\"\n\
         autostart = true\nready = { pattern = 'up' }\nstop = { signal = 'INT', grace_seconds = 0.2 }\n",
    );
    once(&mut tools, "web", "ready", |web| web["ready"] == true);
    let web = id(&mut tools, "web");
    let stopped = tools.ok("stop_process", json!({"process_id": web}));
    assert_eq!(stopped, json!({"status": "stopped", "exit": {"signal": 9}}));
}

#[test]
fn a_stop_command_replaces_the_signal() {
    let command = "stop = { command = 'test $MARK = yes && touch stop', grace_seconds = 60 }\n\
        environment = { MARK = 'yes' }";
    let file = records(command).replace("while :", "until [ -e stop ]");
    let place = Place::new();
    write(&place, &file);
    place.run(&["trust", "--yes"]);
    let up = || {
        let _ = std::fs::remove_file(place.path("project/stop"));
        place.run(&["up"]);
        until_ready(&place);
    };
    up();
    place.run(&["stop", "web"]);
    assert_eq!(got(&place), "", "no signal was sent");
    let status = place.run(&["status", "web"]);
    assert!(status.contains("exit.code: 0") && status.contains("it was stopped"), "{status}");
    up();
    place.run(&["kill"]);
    assert_eq!(got(&place), "", "no signal was sent");
    assert!(place.path("project/stop").exists());
}

#[test]
fn what_outlives_the_program_after_a_stop_command_gets_the_signal() {
    // A job of an interactive shell has a group of its own, so nothing but the signal ends it.
    let (_place, _server, mut tools) = trusted(
        "[processes.web]\ncommand = \"set -m; sleep 3600 & echo up; until [ -e stop ]; do sleep 0.01; done\"\n\
         autostart = true\nready = { pattern = 'up' }\n\
         stop = { command = 'touch stop', grace_seconds = 3600 }\n",
    );
    once(&mut tools, "web", "ready", |web| web["ready"] == true);
    let web = id(&mut tools, "web");
    let stopped = tools.ok("stop_process", json!({"process_id": web}));
    assert_eq!(stopped, json!({"status": "stopped", "exit": {"code": 0}}));
}

#[test]
fn a_stop_command_that_hangs_is_killed_and_so_is_the_process() {
    let stop = format!("autostart = true\nstop = {{ command = \"{HANGS}\", grace_seconds = 2 }}");
    let (place, _server, mut tools) = trusted(&records(&stop));
    once(&mut tools, "web", "ready", |web| web["ready"] == true);
    let web = id(&mut tools, "web");
    // Two callers at once run it once.
    let both = [json!({"process_id": web}), json!({"process_id": web})];
    for arguments in both {
        tools.ask("stop_process", arguments);
    }
    for _ in 0..2 {
        assert_eq!(tools.receive().unwrap()["status"], "stopped");
    }
    let status = tools.status(&web);
    assert_eq!(status["exit"], json!({"signal": 9}), "{status}");
    let why = "it was stopped, but its stop command did not end within 2 s";
    assert_eq!(status["why_not_running"], why);
    nothing_hangs(&place);
}

#[test]
fn if_the_stop_command_fails_the_signal_is_sent() {
    let stop = "autostart = true\nstop = { command = 'echo no such server >&2; exit 3', signal = 'INT', grace_seconds = 60 }";
    let (place, _server, mut tools) = trusted(&records(stop));
    once(&mut tools, "web", "ready", |web| web["ready"] == true);
    let web = id(&mut tools, "web");
    tools.ok("stop_process", json!({"process_id": web}));
    assert_eq!(got(&place), "int");
    let why = "it was stopped, but its stop command exited with code 3: no such server";
    assert_eq!(tools.status(&web)["why_not_running"], why);
}

#[test]
fn a_process_that_does_not_start_is_not_reported_as_restarted() {
    let place = Place::new();
    write(&place, &records(""));
    place.run(&["trust", "--yes"]);
    place.run(&["up"]);
    place.run(&["wait", "web", "up"]);
    write(&place, "[processes.web]\ncommand = ['no-such-program']\n");
    place.run(&["trust", "--yes"]);
    let output = place.patterm(&["restart", "web"]).output().unwrap();
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(1), ""), "{error}");
    assert!(error.contains("no-such-program"), "{error}");
    let output = place.patterm(&["up"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("web  failed: ") && out.contains("no-such-program"), "{out}");
}

#[test]
fn up_says_why_a_process_cannot_be_started() {
    let place = Place::new();
    write(
        &place,
        "[processes.db]\ncommand = 'cat'\nready = { command = 'false', timeout_seconds = 0.2 }\n\
         [processes.api]\ncommand = 'cat'\ndepends_on = ['db']\n",
    );
    place.run(&["trust", "--yes"]);
    place.run(&["up", "api"]);
    let reason = "it needs db, which was not ready in time";
    until(reason, || place.run(&["ps"]).contains(reason).then_some(()));
    let output = place.patterm(&["up"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains(&format!("api  failed: `api` cannot be started: {reason}")), "{out}");
}
