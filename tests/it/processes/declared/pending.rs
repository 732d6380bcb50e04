//! A process that waits for its dependencies or for its next restart counts as its next run, also for callers that wait
//! for its output, and whatever happens to the server meanwhile.

use serde_json::{Value, json};

use super::{id, named, once, trusted, write};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

/// `db` is ready once it has read a line.
const FILE: &str = r#"
    [processes.api]
    command = "echo listening; cat"
    depends_on = ["db"]
    [processes.db]
    command = "stty -echo; read line; echo accepting; cat"
    ready = { pattern = '^accepting' }
"#;

fn wait(process: &str, pattern: &str, seconds: f64) -> Value {
    json!({"process_id": process, "pattern": pattern, "timeout_seconds": seconds})
}

/// Makes `db` ready.
#[track_caller]
fn release(tools: &mut ToolClient) {
    once(tools, "db", "running", |db| db["status"] == "running");
    let db = id(tools, "db");
    tools.line(&db, "");
}

#[test]
fn a_wait_for_a_line_begins_with_the_run_that_is_to_come() {
    let (_place, server, mut tools) = trusted(FILE);
    let mut other = ToolClient::of(&server);
    let api = id(&mut tools, "api");
    for run in 1..=2 {
        tools.ok("start_process", json!({"process_id": api}));
        let early = tools.ok("wait_for_pattern", wait(&api, "listening", 0.05));
        let outcome = (&early["matched"], &early["timed_out"], &early["exited"]);
        assert_eq!(outcome, (&json!(false), &json!(true), &json!(false)), "run {run}");
        tools.ask("wait_for_pattern", wait(&api, "listening", 20.0));
        release(&mut other);
        let answer = tools.receive().unwrap();
        assert_eq!((&answer["matched"], &answer["line"]), (&json!(true), &json!("listening")));
        assert_eq!(tools.status(&api)["runs"], run);
        for process in [&api, &id(&mut tools, "db")] {
            tools.ok("stop_process", json!({"process_id": process}));
        }
    }
    let last = tools.ok("wait_for_pattern", wait(&api, "listening", 20.0));
    assert_eq!(last["matched"], true, "it has ended for good, so its last run counts: {last}");
}

#[test]
fn a_wait_for_a_run_that_is_cancelled_ends() {
    let (_place, server, mut tools) = trusted(FILE);
    let mut other = ToolClient::of(&server);
    let api = id(&mut tools, "api");
    let stop = json!({"process_id": api});
    tools.ok("start_process", json!({"process_id": api}));
    tools.ask("wait_for_pattern", wait(&api, "listening", 20.0));
    // Answered after the wait began: both are served by one thread, in order.
    tools.ask("whoami", json!({}));
    tools.receive().unwrap();
    other.ok("stop_process", stop.clone());
    let never = tools.receive().unwrap_err();
    assert!(never.message.contains("has no output"), "{never:?}");
    release(&mut other);
    tools.ok("start_process", json!({"process_id": api}));
    tools.wait(&api, "listening");
    for process in [&api, &id(&mut tools, "db")] {
        tools.ok("stop_process", json!({"process_id": process}));
    }
    tools.ok("start_process", json!({"process_id": api}));
    tools.ask("wait_for_pattern", wait(&api, "listening", 20.0));
    tools.ask("whoami", json!({}));
    tools.receive().unwrap();
    other.ok("stop_process", stop);
    let answer = tools.receive().unwrap();
    assert_eq!((&answer["exited"], &answer["matched"]), (&json!(true), &json!(false)), "{answer}");
}

#[test]
fn in_a_restart_delay_the_next_run_counts() {
    let (_place, server, mut tools) = trusted(
        "[processes.flaky]\ncommand = 'echo attempt; read x; exit 1'\nautostart = true\n\
         restart = { policy = 'always', delay_seconds = 3000 }\n",
    );
    let mut other = ToolClient::of(&server);
    let flaky = id(&mut tools, "flaky");
    tools.wait(&flaky, "attempt");
    tools.line(&flaky, "");
    once(&mut tools, "flaky", "waiting", |flaky| flaky.get("next_restart_in").is_some());
    for pattern in ["attempt", "never"] {
        let early = tools.ok("wait_for_pattern", wait(&flaky, pattern, 0.05));
        assert_eq!(early["timed_out"], true, "{pattern}: {early}");
    }
    tools.ask("wait_for_pattern", wait(&flaky, "attempt", 20.0));
    other.ok("start_process", json!({"process_id": flaky}));
    assert_eq!(tools.receive().unwrap()["matched"], true);
}

#[test]
fn those_that_wait_for_a_process_keep_waiting_while_it_is_restarted() {
    let (_place, _server, mut tools) = trusted(FILE);
    let (api, db) = (id(&mut tools, "api"), id(&mut tools, "db"));
    tools.ok("start_process", json!({"process_id": api}));
    for run in 2..=4 {
        once(&mut tools, "db", "running", |db| db["status"] == "running");
        tools.ok("restart_process", json!({"process_id": db}));
        assert_eq!(tools.status(&db)["runs"], run);
        let waiting = tools.status(&api);
        assert_eq!(waiting["waiting_for"], json!(["db"]), "{waiting}");
    }
    release(&mut tools);
    once(&mut tools, "api", "running", |api| api["status"] == "running");
}

#[test]
fn the_next_server_continues_what_waits_and_counts_a_failure_once() {
    let place = Place::new();
    let flaky = |name: &str| {
        format!(
            "[processes.{name}]\ncommand = 'read x; exit 1'\nautostart = true\n\
             restart = {{ policy = 'always', delay_seconds = 3000, longest_delay_seconds = 3600 }}\n"
        )
    };
    write(&place, &format!("{FILE}\n{}{}", flaky("flaky"), flaky("cancelled")));
    place.run(&["trust", "--yes"]);
    let server = place.serve();
    let mut before = ToolClient::at(&server.socket());
    for name in ["flaky", "cancelled"] {
        once(&mut before, name, "running", |process| process["status"] == "running");
        let process = id(&mut before, name);
        before.line(&process, "");
        once(&mut before, name, "waiting", |process| process.get("next_restart_in").is_some());
    }
    let cancelled = id(&mut before, "cancelled");
    before.ok("stop_process", json!({"process_id": cancelled}));
    let api = id(&mut before, "api");
    before.ok("start_process", json!({"process_id": api}));
    once(&mut before, "db", "running", |db| db["status"] == "running");
    server.kill();

    let server = place.serve();
    let mut after = ToolClient::at(&server.socket());
    let flaky = once(&mut after, "flaky", "waiting", |one| one.get("next_restart_in").is_some());
    assert_eq!((&flaky["restarts"], &flaky["runs"]), (&json!(1), &json!(1)), "{flaky}");
    assert!(flaky["next_restart_in"].as_f64().unwrap() <= 3_000.0, "{flaky}");
    let cancelled = named(&mut after, "cancelled").unwrap();
    assert_eq!(cancelled.get("next_restart_in"), None, "{cancelled}");
    let waiting = after.status(&api);
    assert_eq!(waiting["waiting_for"], json!(["db"]), "{waiting}");
    release(&mut after);
    once(&mut after, "api", "running", |api| api["status"] == "running");
    server.kill();

    // What was started does not wait any more.
    let mut last = ToolClient::at(&place.serve().socket());
    let api = once(&mut last, "api", "running", |api| api["status"] == "running");
    assert_eq!((&api["runs"], api.get("waiting_for")), (&json!(1), None));
}

#[test]
fn restoring_a_process_and_its_dependency_restores_both() {
    let place = Place::new();
    write(
        &place,
        "[processes.api]\ncommand = 'echo listening; cat'\ndepends_on = ['db', 'queue']\n\
         [processes.db]\ncommand = 'echo up; cat'\nready = { pattern = '^up' }\n\
         [processes.queue]\ncommand = 'cat'\n",
    );
    place.run(&["trust", "--yes"]);
    place.run(&["up"]);
    place.run(&["wait", "api", "listening"]);
    place.run(&["kill"]);
    let restored = place.run(&["restore"]);
    let rows: Vec<_> = restored.lines().collect();
    assert!(rows[0].contains("api started again: it is waiting for db"), "{restored}");
    assert!(rows[1].contains("db started again"), "{restored}");
    assert!(rows[2].contains("queue started again"), "{restored}");
    place.run(&["wait", "api", "listening"]);
    assert_eq!(place.run(&["restore"]), "nothing to restore\n");
}
