//! Servers that are started from a pane: they do not run in the pane, and inherit nothing from it.

use patterm_wire::Method;
use std::path::Path;

use patterm_host::Project;
use patterm_wire::requests::ServerEntry;
use patterm_wire::requests::StartServer;
use rustix::process::Signal;

use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Running, running_in};

const SECRET: &str = "hunter2-of-one-agent";

/// Waits for the server of a project.
fn server_of(place: &Place, folder: &Path) -> Option<ServerEntry> {
    let listed: Vec<ServerEntry> = serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
    let folder = folder.canonicalize().unwrap();
    listed.into_iter().find(|entry| entry.project == folder)
}

fn environment(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    String::from_utf8_lossy(&bytes).replace('\0', "\n")
}

/// A process and its ancestors.
fn line_of(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 0)
    };
    std::iter::successors(Some(pid), parent).collect()
}

/// The keepers of a project, by their command lines.
fn keepers(place: &Place) -> Vec<u32> {
    let mark = format!("{}.keeper", place.project().key());
    let is_keeper = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark) && name.trim() != "patterm-init"
    };
    running_in(&place.path("project")).into_iter().filter(is_keeper).collect()
}

fn is_in_a_pane(pid: u32) -> bool {
    environment(pid).lines().any(|line| line.starts_with("PATTERM_PANE="))
}

/// Starts a server of another project from a pane of this one; returns its entry.
fn start_from_a_pane(place: &Place, other: &Path) -> (String, ServerEntry) {
    let script = format!(
        "cd {}; SECRET={SECRET} {} run --name there -- sleep 1000; echo ran $?; exec sleep 1000",
        other.display(),
        place.binary().display()
    );
    let pane = place.run(&["run", "--", "sh", "-c", &script]).trim().to_owned();
    place.run(&["wait", &pane, "^ran 0"]);
    let entry = until("the other project's server", || server_of(place, other));
    (pane, entry)
}

fn check_is_outside(place: &Place, pane: &str, other: &Path, entry: &ServerEntry) {
    let own = Running::of(server_of(place, &place.path("project")).unwrap().pid);
    let there = running_in(other);
    assert!(there.contains(&entry.pid));
    // The shell has the secret and passed it to the process that it started, but to nothing else.
    let (in_panes, others): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|pid| is_in_a_pane(*pid));
    assert_eq!(in_panes.len(), 2, "the shell and the process that it started");
    for pid in others {
        assert!(!environment(pid).contains(SECRET), "{pid} has the secret");
    }
    let keepers = keepers(place);
    assert_eq!(keepers.len(), 1);
    let line = line_of(entry.pid);
    assert!(!line.contains(&keepers[0]), "{line:?} is below the keeper {}", keepers[0]);
    // It continues without the pane and its project.
    let server = Running::of(entry.pid);
    place.run(&["close", pane]);
    assert!(!server.is_gone());
    place.run(&["kill"]);
    own.wait();
    assert!(!server.is_gone());
    let mut tools = ToolClient::at(&entry.socket);
    assert_eq!(tools.ids().len(), 1);
    let listed = tools.ok("list_processes", serde_json::json!({}));
    assert_eq!(listed["processes"][0]["status"], "running", "{listed}");
    assert!(place.patterm(&["kill"]).current_dir(other).output().unwrap().status.success());
    server.wait();
}

#[test]
fn a_server_started_from_a_pane_for_another_project_runs_outside_and_without_its_secrets() {
    let place = Place::new();
    let other = place.folder("other");
    let (pane, entry) = start_from_a_pane(&place, &other);
    check_is_outside(&place, &pane, &other, &entry);
}

/// The keeper started this server; what the server starts is nevertheless not below the keeper.
#[test]
fn the_same_with_a_server_that_the_keeper_started() {
    let place = Place::new();
    place.run(&["run", "--", "sleep", "1000"]);
    let first = Running::of(server_of(&place, &place.path("project")).unwrap().pid);
    first.signal(Signal::KILL);
    first.wait();
    place.run(&["ps"]);
    let other = place.folder("other");
    let (pane, entry) = start_from_a_pane(&place, &other);
    check_is_outside(&place, &pane, &other, &entry);
}

#[test]
fn no_server_runs_in_the_foreground_of_a_pane() {
    let place = Place::new();
    let other = place.folder("other");
    let script = format!(
        "cd {}; {} serve --foreground; echo said $?; sleep 1000",
        other.display(),
        place.binary().display()
    );
    let pane = place.run(&["run", "--", "sh", "-c", &script]);
    place.run(&["wait", pane.trim(), "would end with the pane"]);
    place.run(&["wait", pane.trim(), "^said 1"]);
    assert_eq!(server_of(&place, &other), None);
}

/// The panes of a server that was started from a pane survive it, whatever kills it.
#[test]
fn the_panes_of_a_server_that_was_started_from_a_pane_outlive_it() {
    let place = Place::new();
    let other = place.folder("other");
    let (_, entry) = start_from_a_pane(&place, &other);
    let server = Running::of(entry.pid);
    server.signal(Signal::KILL);
    server.wait();
    let output = place.patterm(&["ps", "--json"]).current_dir(&other).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("running") && printed.contains("there"), "{printed}");
    assert!(place.patterm(&["kill"]).current_dir(&other).output().unwrap().status.success());
}

#[test]
fn a_living_keeper_alone_starts_the_server() {
    let place = Place::new();
    let pane = place.run(&["run", "--", "sleep", "1000"]);
    let keepers = keepers(&place);
    assert_eq!(keepers.len(), 1);
    let keeper = Running::of(keepers[0]);
    let first = server_of(&place, &place.path("project")).unwrap();
    // It cannot start one before the client has connected.
    keeper.signal(Signal::STOP);
    let server = Running::of(first.pid);
    server.signal(Signal::KILL);
    server.wait();
    let mut client = place.patterm(&["ps"]).env("SECRET", SECRET).spawn().unwrap();
    let wanted = place.path(&format!("run/patterm/{}.wanted", place.project().key()));
    let is_over = |client: &mut std::process::Child| client.try_wait().unwrap().is_some();
    until("the client asks the keeper", || (wanted.exists() || is_over(&mut client)).then_some(()));
    assert!(!is_over(&mut client), "it started a server itself");
    keeper.signal(Signal::CONT);
    assert!(client.wait().unwrap().success());
    let second = server_of(&place, &place.path("project")).unwrap();
    assert_ne!(second.pid, first.pid);
    assert!(!environment(second.pid).contains(SECRET));
    assert!(!wanted.exists());
    place.run(&["send", pane.trim(), "x"]);
    place.run(&["kill"]);
}

/// It is not started in the pane instead, where it would end with the pane.
#[test]
fn the_reason_why_a_server_cannot_be_started_from_a_pane_is_reported() {
    let place = Place::new();
    let other = place.folder("other");
    place.run(&["serve"]);
    // There is a file in place of its state folder.
    let key = Project::of(&other).unwrap().key().to_owned();
    let state = place.state().path().with_file_name(key);
    std::fs::write(state, "").unwrap();
    let script = format!(
        "stty cols 1000; cd {}; {} run -- true; echo said $?; sleep 1000",
        other.display(),
        place.binary().display()
    );
    let pane = place.run(&["run", "--", "sh", "-c", &script]);
    place.run(&["wait", pane.trim(), "own project cannot start the server of"]);
    place.run(&["wait", pane.trim(), "^said 1"]);
}

/// More starts wait for a lock than a server has threads for blocking work.
#[test]
fn starts_of_other_servers_that_wait_for_a_lock_delay_no_call() {
    let place = Place::new();
    let other = place.folder("other");
    let server = place.serve();
    let key = Project::of(&other).unwrap().key().to_owned();
    let starting =
        std::fs::File::create(place.path(&format!("run/patterm/{key}.starting"))).unwrap();
    starting.lock().unwrap();
    let mut asking = ToolClient::at(&server.socket());
    for n in 0..100 {
        asking.peer.ask(n, StartServer::NAME, serde_json::json!({"folder": other}));
    }
    // It needs such a thread, and comes after them on the same connection.
    let spawned =
        asking.peer.answer("spawn", "spawn_process", serde_json::json!({"argv": ["cat"]}));
    assert_eq!(spawned["result"]["status"], "running", "{spawned}");
}
