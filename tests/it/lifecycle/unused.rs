//! A background server that nothing uses shuts down.

use std::time::{Duration, Instant};

use crate::support::{Place, Running};

/// A place whose servers shut down after one second without anything that uses them.
fn place() -> Place {
    let mut place = Place::new();
    place.set("PATTERM_LIMITS", "unused_seconds=1");
    place
}

#[test]
fn an_unused_server_shuts_down_and_the_next_client_starts_another() {
    let place = place();
    let server = place.serve();
    if let Some(process) = Running::find(server.pid()) {
        process.wait();
    }
    assert_eq!(place.run(&["run", "--", "cat"]).trim(), "p1");
}

#[test]
fn a_server_with_a_running_process_stays_until_the_process_has_ended() {
    let place = place();
    place.run(&["run", "--name", "needed", "--", "cat"]);
    let server = Running::of(place.serve().pid());
    let several_periods = Instant::now() + Duration::from_secs(4);
    assert!(!server.wait_until(several_periods), "it ended with a running process");
    assert!(place.run(&["ps"]).contains("needed"));
    place.run(&["close", "needed"]);
    server.wait();
}

/// systemd sets the variable to the id of the process that it starts.
#[test]
fn a_server_that_systemd_started_stays() {
    let place = place();
    let script = "SYSTEMD_EXEC_PID=$$ exec \"$0\" serve";
    let mut command = place.command(std::path::Path::new("sh"));
    let output = command.args(["-c", script]).arg(place.binary()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let server = Running::of(place.serve().pid());
    let several_periods = Instant::now() + Duration::from_secs(4);
    assert!(!server.wait_until(several_periods), "it ended");
    place.run(&["upgrade"]);
    let next = Running::of(place.serve().pid());
    let several_periods = Instant::now() + Duration::from_secs(4);
    assert!(!next.wait_until(several_periods), "its successor ended");
}
