//! A keeper that is stopped, or asked for too much.

use rustix::process::Signal;
use serde_json::json;

use super::faults::keeper;
use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Running, running_in};

pub(super) fn serve(place: &Place) -> ToolClient {
    ToolClient::at(&place.serve().socket())
}

/// The programs of this name in a project.
pub(super) fn programs(place: &Place, name: &str) -> Vec<u32> {
    let named = |pid: &u32| {
        let found = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        found.is_ok_and(|found| found.trim() == name)
    };
    running_in(&place.path("project")).into_iter().filter(named).collect()
}

pub(super) fn nothing_is_left(place: &Place) {
    assert_eq!(running_in(&place.path("project")), Vec::<u32>::new());
}

/// Kills a project, which must fail; returns the output.
pub(super) fn failing_kill(place: &Place, arguments: &[&str]) -> String {
    let output = place.patterm(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_late_reply_of_the_keeper_is_not_taken_for_the_answer_to_the_next_request() {
    let place = Place::new();
    let mut tools = serve(&place);
    let before = tools.run(&["cat"]);
    let keeper = Running::of(keeper(&place));
    keeper.signal(Signal::STOP);
    let argv = json!({"argv": ["sh", "-c", "echo late; exec sleep 1000"]});
    let error = tools.refused("unavailable", "spawn_process", argv);
    keeper.signal(Signal::CONT);
    let second = tools.sh("echo second; exec cat");
    let third = tools.sh("echo third; exec cat");
    tools.wait(&second, "^second$");
    tools.wait(&third, "^third$");
    tools.ok("stop_process", json!({"process_id": third}));
    assert_eq!(tools.status(&second)["status"], "running");
    tools.line(&second, "typed");
    tools.wait(&second, "^typed$");
    assert_eq!(tools.ids(), [before, second, third], "the one that failed has no entry");
    until("nothing runs without an entry", || programs(&place, "sleep").is_empty().then_some(()));
    assert_eq!(programs(&place, "cat").len(), 2);
    assert!(error.contains("keeper") && error.contains("kill -CONT"), "{error}");
}

#[test]
fn everything_that_does_not_need_the_keeper_continues_while_it_is_stopped() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.sh("echo up; exec cat");
    tools.wait(&id, "up");
    let keeper = Running::of(keeper(&place));
    keeper.signal(Signal::STOP);
    let mut waiting = serve(&place);
    waiting.ask("spawn_process", json!({"argv": ["cat"]}));
    // The server has received it by the time it answers the next one.
    tools.ok("whoami", json!({}));
    for _ in 0..3 {
        tools.line(&id, "typed");
        tools.wait(&id, "typed");
        tools.ids();
        tools.ok("search_output", json!({"process_id": id, "pattern": "up"}));
        // Calls `whoami`, which searches the caller's ancestors for the keeper.
        place.run(&["token", "ls"]);
    }
    keeper.signal(Signal::CONT);
    waiting.receive().expect("nothing kept the test from continuing the keeper in time");
}

#[test]
fn a_process_that_is_just_starting_can_be_restarted() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.sh("echo up; exec cat");
    tools.wait(&id, "up");
    tools.ok("stop_process", json!({"process_id": id}));
    let keeper = Running::of(keeper(&place));
    keeper.signal(Signal::STOP);
    let mut starting = serve(&place);
    starting.ask("start_process", json!({"process_id": id}));
    until("it is starting", || (tools.status(&id)["status"] == "starting").then_some(()));
    let mut restarting = serve(&place);
    restarting.ask("restart_process", json!({"process_id": id}));
    // The server has received it by the time it answers the next one.
    tools.ok("whoami", json!({}));
    keeper.signal(Signal::CONT);
    starting.receive().unwrap();
    let restarted = restarting.receive().unwrap();
    assert_eq!(restarted["status"], "running", "{restarted}");
}

#[test]
fn a_close_that_the_keeper_did_not_confirm_is_not_reported_as_closed() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.run(&["cat"]);
    let keeper = Running::of(keeper(&place));
    keeper.signal(Signal::STOP);
    let error = tools.refused("unavailable", "close_process", json!({"process_id": id}));
    assert!(error.contains("was not closed"), "{error}");
    assert_eq!(tools.ids(), [id.as_str()]);
    keeper.signal(Signal::CONT);
    assert_eq!(tools.close(&id), [id]);
    assert!(programs(&place, "cat").is_empty());
}

#[test]
fn a_server_does_not_replace_a_keeper_that_is_stopped() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.sh("echo up; exec cat");
    tools.wait(&id, "up");
    let stopped = keeper(&place);
    let process = Running::of(stopped);
    process.signal(Signal::STOP);
    server.kill();
    let error = failing_kill(&place, &["kill"]);
    assert!(error.contains(&format!("kill -CONT {stopped}")), "{error}");
    process.signal(Signal::CONT);
    let mut tools = serve(&place);
    assert_eq!(tools.status(&id)["status"], "running", "nothing was reported as lost");
    assert_eq!(keeper(&place), stopped);
}

#[test]
fn a_keeper_that_cannot_be_replaced_at_once_is_replaced_later() {
    // The binary is a separate copy there.
    let place = Place::of_another_user();
    let user = place.user().unwrap();
    let server = user.does(|| place.serve());
    let mut tools = user.does(|| ToolClient::at(&server.socket()));
    let id = tools.sh("echo up; exec cat");
    tools.wait(&id, "up");
    let (binary, away) = (place.binary(), place.path("away"));
    std::fs::rename(&binary, &away).unwrap();
    let dead = Running::of(keeper(&place));
    dead.signal(Signal::KILL);
    dead.wait();
    until("it was tried", || {
        let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
        log.contains("cannot reach or replace the keeper; trying again").then_some(())
    });
    std::fs::rename(&away, &binary).unwrap();
    // The next one holds the panes, and starts a server when this one dies.
    until("another keeper has the pane", || {
        let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
        (log.matches("connected to the keeper").count() == 2).then_some(())
    });
    server.kill();
    let mut tools = user.does(|| serve(&place));
    assert_eq!(tools.status(&id)["status"], "running");
    tools.line(&id, "typed");
    tools.wait(&id, "^typed$");
    user.does(|| place.run(&["kill"]));
    nothing_is_left(&place);
}

#[test]
fn a_program_with_too_many_arguments_is_refused_and_the_keeper_stays() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.run(&["cat"]);
    let before = keeper(&place);
    let long = "x".repeat(9 << 20);
    let error = tools.refused("invalid_argument", "spawn_process", json!({"argv": ["cat", long]}));
    assert!(error.contains("9437184 bytes"), "{error}");
    let many: serde_json::Map<_, _> =
        (0..100).map(|n| (format!("V{n}"), json!("y".repeat(100_000)))).collect();
    let arguments = json!({"argv": ["cat"], "env": many});
    let error = tools.refused("invalid_argument", "spawn_process", arguments);
    assert!(error.contains("arguments and environment"), "{error}");
    // Arguments that take more room in a message than for the kernel.
    let mut argv = vec!["\u{1}".repeat(100_000); 18];
    argv.insert(0, "cat".into());
    let arguments = json!({"argv": argv});
    let error = tools.refused("invalid_argument", "spawn_process", arguments);
    assert!(error.contains("too long for the keeper"), "{error}");
    assert_eq!(keeper(&place), before);
    let other = tools.run(&["cat"]);
    assert_eq!(tools.ids(), [id, other]);
    assert_eq!(programs(&place, "cat").len(), 2);
    place.run(&["kill"]);
    nothing_is_left(&place);
    assert_eq!(place.run(&["kill"]), "no server is running for this project\n");
}
