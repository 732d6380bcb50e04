//! Declared processes when servers crash or shut down.

use serde_json::{Value, json};

use super::{id, named, once, write};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

fn tools(place: &Place) -> ToolClient {
    ToolClient::at(&place.serve().socket())
}

#[test]
fn after_a_crash_nothing_is_started_a_second_time() {
    let place = Place::new();
    write(
        &place,
        "[processes.once]\ncommand = 'exit 0'\nautostart = true\n\
         [processes.dev]\ncommand = 'echo up; cat'\nautostart = true\nready = { pattern = 'up' }\n\
         [processes.idle]\ncommand = 'cat'\n\
         [processes.flaky]\ncommand = 'read x; exit 1'\nautostart = true\n\
         restart = { policy = 'always', delay_seconds = 3000 }\n",
    );
    place.run(&["trust", "--yes"]);
    let server = place.serve();
    let mut before = ToolClient::at(&server.socket());
    once(&mut before, "once", "over", |one| one["status"] == "exited");
    once(&mut before, "dev", "ready", |dev| dev["ready"] == true);
    let flaky = id(&mut before, "flaky");
    once(&mut before, "flaky", "running", |flaky| flaky["status"] == "running");
    before.line(&flaky, "");
    once(&mut before, "flaky", "waiting", |flaky| flaky.get("next_restart_in").is_some());
    let pid = named(&mut before, "dev").unwrap()["process_id"].clone();
    server.kill();

    let mut after = tools(&place);
    let dev = once(&mut after, "dev", "ready again", |dev| dev["ready"] == true);
    assert_eq!((&dev["process_id"], &dev["runs"]), (&pid, &json!(1)));
    let runs = |tools: &mut ToolClient, name: &str| {
        let id = id(tools, name);
        tools.status(&id)["runs"].clone()
    };
    once(&mut after, "flaky", "waiting again", |flaky| flaky.get("next_restart_in").is_some());
    assert_eq!([runs(&mut after, "once"), runs(&mut after, "idle")], [json!(1), json!(0)]);

    // A server that was shut down, and its successor, start afresh.
    place.run(&["kill"]);
    let mut fresh = tools(&place);
    once(&mut fresh, "once", "run again", |one| one["runs"] == 2 && one["status"] == "exited");
    once(&mut fresh, "dev", "run again", |dev| dev["runs"] == 2 && dev["ready"] == true);
    assert_eq!(named(&mut fresh, "idle").unwrap()["status"], "stopped");
}

#[test]
fn limits_of_the_file_apply_from_the_next_start_and_the_persons_take_precedence() {
    let place = Place::new();
    write(&place, "[limits]\nprocesses = 1\nlog_bytes = 1\n");
    place.run(&["trust", "--yes"]);
    place.run(&["run", "--", "cat"]);
    place.run(&["run", "--", "cat"]);
    place.run(&["kill"]);
    let refused = |arguments: &[&str]| {
        let output = place.patterm(arguments).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        refused(&["run", "--", "cat"]).contains(
            "there are 2 processes, ended ones included, and the limit is 1; close 2 first"
        )
    );
    place.run(&["kill"]);
    let output = place.patterm(&["serve"]).env("PATTERM_LIMITS", "processes=9").output().unwrap();
    assert!(output.status.success());
    let started: Value = serde_json::from_str(&place.run(&["run", "--json", "--", "cat"])).unwrap();
    assert_eq!(started["status"], "running");
}
