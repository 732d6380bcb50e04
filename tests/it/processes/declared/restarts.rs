//! A process that exits is restarted according to the file, and not forever.

use serde_json::json;

use super::{id, named, once, trusted};

#[test]
fn a_process_that_fails_repeatedly_is_given_up() {
    let (place, _server, mut tools) = trusted(
        "[processes.bad]\ncommand = 'echo once more; exit 3'\nautostart = true\n\
         restart = { policy = 'on-failure', limit = 3, delay_seconds = 0.01 }\n",
    );
    let bad = once(&mut tools, "bad", "given up", |bad| {
        bad["problem"].as_str().is_some_and(|p| p.starts_with("it ended 4 times in a row"))
    });
    assert_eq!((&bad["runs"], &bad["restarts"]), (&json!(4), &json!(3)));
    assert_eq!((&bad["status"], &bad["exit"]), (&json!("exited"), &json!({"code": 3})));
    assert_eq!(bad.get("next_restart_in"), None);
    // A person is told what they can do.
    let listed = place.run(&["ps"]);
    assert!(
        listed.contains("no longer restarted automatically; restart it when the cause is fixed)"),
        "{listed}"
    );
    let bad = id(&mut tools, "bad");
    assert_eq!(tools.raw(&bad).matches("once more").count(), 4);
    // A manual start resets the count.
    tools.ok("start_process", json!({"process_id": bad}));
    once(&mut tools, "bad", "given up again", |bad| {
        bad["runs"] == 8 && bad.get("problem").is_some()
    });
}

#[test]
fn the_next_restart_is_announced_and_can_be_cancelled() {
    let (_place, _server, mut tools) = trusted(
        "[processes.bad]\ncommand = 'read x; exit 1'\nautostart = true\n\
         restart = { policy = 'always', delay_seconds = 3000 }\n",
    );
    once(&mut tools, "bad", "running", |bad| bad["status"] == "running");
    let process = id(&mut tools, "bad");
    tools.line(&process, "");
    let bad = once(&mut tools, "bad", "waiting", |bad| bad.get("next_restart_in").is_some());
    assert!((2_000.0..=3_000.0).contains(&bad["next_restart_in"].as_f64().unwrap()), "{bad}");
    assert_eq!(bad["restarts"], 1);
    tools.ok("stop_process", json!({"process_id": process}));
    assert_eq!(tools.status(&process).get("next_restart_in"), None);
    tools.refused("not_running", "stop_process", json!({"process_id": process}));
    tools.ok("start_process", json!({"process_id": process}));
    let again = tools.status(&process);
    assert_eq!((&again["restarts"], &again["runs"]), (&json!(0), &json!(2)));
}

#[test]
fn a_process_that_succeeds_or_is_stopped_is_not_restarted() {
    let (_place, _server, mut tools) = trusted(
        "[processes.well]\ncommand = 'exit 0'\nautostart = true\n\
         restart = { policy = 'on-failure', delay_seconds = 0 }\n\
         [processes.asked]\ncommand = 'cat'\nautostart = true\n\
         restart = { policy = 'always', delay_seconds = 0 }\n\
         [processes.killed]\ncommand = ['sh', '-c', 'kill -9 $$']\nautostart = true\n\
         restart = { policy = 'on-failure', limit = 1, delay_seconds = 0 }\n",
    );
    once(&mut tools, "asked", "running", |asked| asked["status"] == "running");
    let asked = id(&mut tools, "asked");
    tools.ok("stop_process", json!({"process_id": asked}));
    // The exit of another process, which the same task sees later, proves that it has checked.
    once(&mut tools, "killed", "given up", |killed| killed.get("problem").is_some());
    let well = once(&mut tools, "well", "ended", |well| well["status"] == "exited");
    assert_eq!((&well["runs"], &well["ready"]), (&json!(1), &json!(true)));
    let asked = named(&mut tools, "asked").unwrap();
    assert_eq!((&asked["status"], &asked["restarts"]), (&json!("stopped"), &json!(0)));
}
