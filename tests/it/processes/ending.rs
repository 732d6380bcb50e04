//! `patterm kill` and the shutdown of a server: programs get time to exit, none survives, and those
//! that cannot be killed are named.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use super::faults::keeper;
use super::keeper_faults::{failing_kill, nothing_is_left, programs, serve};
use crate::support::tool_client::{ToolClient, alive, id_of, until};
use crate::support::{Place, Running, running_in};

/// Stops its own init, once or again and again.
const STOPS_ITS_INIT: [&str; 2] = [
    "kill -STOP $PPID; echo up; exec sleep 1000",
    "(while :; do kill -STOP $PPID; done) & echo up; exec sleep 1000",
];

fn init_of(tools: &mut ToolClient, id: &str) -> u32 {
    let pid = tools.status(id)["pid"].as_u64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

fn start_stopping(tools: &mut ToolClient, script: &str) -> String {
    let id = tools.sh(script);
    tools.wait(&id, "up");
    let init = init_of(tools, &id);
    until("the init is stopped", || is_stopped(init).then_some(()));
    id
}

#[test]
fn a_program_that_stops_its_own_init_does_not_survive_kill() {
    for script in STOPS_ITS_INIT {
        for kill in [&["kill"][..], &["kill", "--now"]] {
            let place = Place::new();
            let mut tools = serve(&place);
            start_stopping(&mut tools, script);
            let error = place.run(kill);
            assert!(error.starts_with("ended the server of "), "{error}");
            nothing_is_left(&place);
        }
    }
}

#[test]
fn a_program_that_stops_its_own_init_can_be_stopped_and_closed() {
    for script in STOPS_ITS_INIT {
        let place = Place::new();
        let mut tools = serve(&place);
        let id = start_stopping(&mut tools, script);
        assert_eq!(tools.close(&id), [id]);
        // The keeper kills what a killed init leaves behind.
        until("nothing is left", || programs(&place, "sleep").is_empty().then_some(()));
    }
    let place = Place::new();
    let mut tools = serve(&place);
    let id = start_stopping(&mut tools, STOPS_ITS_INIT[0]);
    tools.ok("stop_process", json!({"process_id": id}));
    assert_eq!(tools.status(&id)["status"], "stopped");
    assert!(programs(&place, "sleep").is_empty());
}

#[test]
fn kill_continues_a_keeper_that_is_stopped() {
    let place = Place::new();
    let mut tools = serve(&place);
    tools.run(&["cat"]);
    Running::of(keeper(&place)).signal(Signal::STOP);
    place.run(&["kill"]);
    nothing_is_left(&place);
}

/// A program that changed its user: only root can kill it.
#[test]
fn kill_fails_and_names_what_it_could_not_end() {
    let place = Place::of_another_user();
    let raise = place.path("raise");
    std::fs::copy("/usr/bin/setpriv", &raise).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::os::unix::fs::chown(&raise, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&raise, mode).unwrap();
    // It outlives the end of its terminal as well.
    let script =
        format!("trap '' HUP; exec {} --reuid 0 --clear-groups sleep 1000", raise.display());
    place.run(&["run", "--", "sh", "-c", &script]);
    let sleep = until("the program of root", || {
        let owner = |pid: &u32| {
            let found = std::fs::metadata(format!("/proc/{pid}"));
            found.map(|found| std::os::unix::fs::MetadataExt::uid(&found))
        };
        programs(&place, "sleep").into_iter().find(|pid| owner(pid).is_ok_and(|uid| uid == 0))
    });
    let error = failing_kill(&place, &["kill", "--grace", "0.1"]);
    assert!(error.contains("could not be killed"), "{error}");
    assert!(error.contains(&format!("sleep (pid {sleep})")), "{error}");
    assert!(alive(sleep));
    let left = Running::of(sleep);
    left.signal(Signal::KILL);
    left.wait();
}

/// Writes a file on SIGTERM.
const POLITE: &str =
    "trap 'echo asked > ended; exit 0' TERM; echo up; while :; do sleep 0.01; done";

fn was_asked(place: &Place) -> bool {
    place.path("project/ended").exists()
}

#[test]
fn kill_gives_programs_time_to_exit() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.sh(POLITE);
    tools.wait(&id, "up");
    place.run(&["kill"]);
    assert!(was_asked(&place));
    nothing_is_left(&place);
}

#[test]
fn a_server_that_gets_sigterm_gives_programs_time_to_end() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.sh(POLITE);
    tools.wait(&id, "up");
    server.end_with(Signal::TERM);
    assert!(was_asked(&place));
    nothing_is_left(&place);
}

#[test]
fn kill_now_does_not_wait() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.sh(POLITE);
    tools.wait(&id, "up");
    place.run(&["kill", "--now"]);
    assert!(!was_asked(&place));
    nothing_is_left(&place);
}

/// An interactive shell ignores SIGTERM, and its jobs are in their own process groups.
#[test]
fn a_server_that_was_started_from_a_shell_is_terminated_too() {
    let place = Place::new();
    let mut tools = serve(&place);
    let shell = id_of(&tools.ok("spawn_process", json!({"argv": ["bash", "--norc", "-i"]})));
    std::fs::write(place.path("project/polite"), format!("trap '' HUP; {POLITE}")).unwrap();
    tools.line(&shell, "sh polite");
    tools.wait(&shell, "^up");
    place.run(&["kill", "--grace", "60"]);
    assert!(was_asked(&place));
    nothing_is_left(&place);
}

#[test]
fn a_suspended_program_is_terminated_too() {
    let place = Place::new();
    let mut tools = serve(&place);
    let id = tools.sh(POLITE);
    tools.wait(&id, "up");
    let pid = u32::try_from(tools.status(&id)["pid"].as_u64().unwrap()).unwrap();
    Running::of(pid).signal(Signal::STOP);
    until("it is stopped", || is_stopped(pid).then_some(()));
    place.run(&["kill", "--grace", "60"]);
    assert!(was_asked(&place));
    nothing_is_left(&place);
}

#[test]
fn kill_kills_after_the_grace_time_and_names_what_it_waits_for() {
    let mut place = Place::new();
    place.set("XDG_CONFIG_HOME", place.path("home"));
    std::fs::create_dir(place.path("home/patterm")).unwrap();
    let settings = "[limits]\nend_grace_seconds = 2\n";
    std::fs::write(place.path("home/patterm/config.toml"), settings).unwrap();
    let mut tools = serve(&place);
    let arguments = json!({"argv": ["sh", "-c", "trap '' HUP TERM; echo up; while :; do sleep 1; done"],
        "name": "stubborn"});
    let id = id_of(&tools.ok("spawn_process", arguments));
    tools.wait(&id, "up");
    let output = place.patterm(&["kill"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let expected = format!("waiting for {id} (stubborn) to end; after 2s they are killed");
    assert!(error.contains(&expected), "{error}");
    nothing_is_left(&place);
}

/// Exits by itself once a file exists, and not before.
const UNTIL_RELEASED: &str = "trap '' HUP TERM; echo up; until [ -e release ]; do sleep 0.01; done";

#[test]
fn kill_ends_the_programs_of_a_server_that_dies_during_the_grace_time() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.sh(UNTIL_RELEASED);
    tools.wait(&id, "up");
    let mut kill = place.patterm(&["kill", "--grace", "3600"]);
    let mut kill = kill.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut error = BufReader::new(kill.stderr.take().unwrap()).lines();
    let mut next = || error.next().expect("kill goes on").unwrap();
    let waiting = format!("patterm: waiting for {id} (sh) to end");
    let line = next();
    assert!(line.starts_with(&waiting), "{line}");
    server.kill();
    let line = next();
    let died = format!("the server (pid {}) died before it had ended {id} (sh)", server.pid());
    assert!(line.ends_with(&died), "{line}");
    let line = next();
    assert!(line.starts_with(&waiting), "the next server is asked: {line}");
    std::fs::write(place.path("project/release"), "").unwrap();
    let output = kill.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    nothing_is_left(&place);
}

#[test]
fn kill_ends_the_programs_of_a_server_that_dies_before_it_answers() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    tools.run(&["cat"]);
    server.process().signal(Signal::STOP);
    let mut kill = place.patterm(&["kill"]);
    let kill = kill.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The kernel lists the server's end of a connection with the name of its socket, and with inode 0
    // until the server accepts it. Lines may be missing or come twice while others open sockets.
    let socket = server.socket().to_str().unwrap().to_owned();
    until("kill is connected", || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let waits =
            |line: &str| line.ends_with(&socket) && line.split_whitespace().nth(6) == Some("0");
        sockets.lines().any(waits).then_some(())
    });
    server.kill();
    let output = kill.wait_with_output().unwrap();
    let error = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(error.starts_with("ended the server of "), "{error}");
    nothing_is_left(&place);
}

#[test]
fn kill_all_ends_every_project_and_gives_its_programs_time() {
    let place = Place::of_another_user();
    let other = place.folder("other");
    let id = place.run(&["run", "--", "sh", "-c", POLITE]);
    place.run(&["wait", id.trim(), "up"]);
    let in_other = place.patterm(&["run", "--", "cat"]).current_dir(&other).output().unwrap();
    assert!(in_other.status.success(), "{in_other:?}");
    let error = place.run(&["kill", "--all"]);
    assert_eq!(error.matches("ended the server of ").count(), 2, "{error}");
    assert!(was_asked(&place));
    nothing_is_left(&place);
    assert_eq!(running_in(&other), Vec::<u32>::new());
    assert_eq!(place.run(&["kill", "--all"]), "no servers are running\n");
}
