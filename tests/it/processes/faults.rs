//! Faults: repeated cycles without leftovers, and machines that have run out of something. An error
//! reports it at once, and service continues when there is room again.

use std::path::Path;
use std::process::Command;

use patterm_wire::requests::ServerEntry;
use serde_json::json;

use crate::support::tool_client::{ToolClient, long, until};
use crate::support::{Baseline, Place, ProcessStats, Running, running_in};

pub(super) fn start(command: &mut Command) -> ServerEntry {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no server: {errors}"))
}

/// `patterm serve` under a limit that `ulimit` sets.
fn serve_limited(place: &Place, limit: &str) -> ServerEntry {
    let script = format!("ulimit {limit} && exec \"$0\" serve --json");
    start(place.command(Path::new("sh")).args(["-c", &script]).arg(place.binary()))
}

pub(super) fn keeper(place: &Place) -> u32 {
    let found = running_in(&place.path("project")).into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"keeper") && name.trim() != "patterm-init"
    });
    found.expect("a keeper")
}

#[test]
fn many_processes_come_and_go_without_a_trace() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let mut cycle = || {
        let id = tools.sh("echo up; exec cat");
        tools.wait(&id, "up");
        assert_eq!(tools.close(&id), [id]);
    };
    // The first ones start threads that stay, and fill caches.
    cycle();
    let both = [ProcessStats::of(server.pid()), ProcessStats::of(keeper(&place))];
    let at_rest = Baseline::of_each_after(&both, || (0..50).for_each(|_| cycle()));
    let times = if long() { 100_000 } else { 2_000 };
    (0..times).for_each(|_| cycle());
    // Inits end as soon as they are released.
    at_rest.iter().for_each(Baseline::wait_until_reached);
    let grown = at_rest[0].more_resident();
    assert!(grown <= 2 << 20, "{grown} bytes more after {times} processes");
    assert_eq!(std::fs::read_dir(place.state().file("output")).unwrap().count(), 0);
}

/// Starts processes until one is refused; returns them and the refusal.
fn fill(
    tools: &mut ToolClient,
    most: usize,
) -> (Vec<String>, crate::support::tool_client::Refusal) {
    let mut ids = Vec::new();
    loop {
        match tools.call("spawn_process", json!({"argv": ["cat"]})) {
            Ok(started) => ids.push(crate::support::tool_client::id_of(&started)),
            Err(refusal) => return (ids, refusal),
        }
        assert!(ids.len() < most, "no limit was met");
    }
}

/// After the refusal: nothing is left of the refused process, the others live, and closing one
/// makes room for another.
fn check_service_continues(tools: &mut ToolClient, mut ids: Vec<String>) {
    assert_eq!(tools.ids(), ids);
    for id in &ids {
        tools.line(id, "still here");
        tools.wait(id, "still here");
    }
    for _ in 0..3 {
        let freed = ids.pop().unwrap();
        tools.close(&freed);
        let next = tools.run(&["cat"]);
        tools.line(&next, "new");
        tools.wait(&next, "new");
        ids.push(next);
    }
}

/// A shell's usual limit is too low for many panes: it is raised as far as the user may, and
/// programs get the limit that they would have without patterm.
#[test]
fn the_usual_limit_of_descriptors_applies_to_programs_only() {
    let place = Place::new();
    let mut entry = serve_limited(&place, "-Sn 100");
    for _ in 0..2 {
        let mut tools = ToolClient::at(&entry.socket);
        let id = tools.sh("ulimit -Sn; env | grep -c DESCRIPTORS");
        tools.ended(&id);
        assert_eq!(tools.rows(&id), ["100", "0"]);
        for pid in [entry.pid, keeper(&place)] {
            let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
            let row = limits.lines().find(|row| row.starts_with("Max open files")).unwrap();
            let numbers: Vec<_> = row.split_whitespace().skip(3).take(2).collect();
            assert_eq!(numbers[0], numbers[1], "{row}");
        }
        // The next server is started by the keeper, which has a raised limit.
        let process = Running::of(entry.pid);
        process.signal(rustix::process::Signal::KILL);
        process.wait();
        entry = until("the keeper's server", || {
            let listed = place.run(&["ls", "--json"]);
            let listed: Vec<ServerEntry> = serde_json::from_str(&listed).unwrap();
            listed.into_iter().find(|entry| entry.project == place.project().root())
        });
    }
}

#[test]
fn no_descriptor_left_in_the_server() {
    let place = Place::new();
    let entry = serve_limited(&place, "-n 60");
    let mut tools = ToolClient::at(&entry.socket);
    let (ids, refusal) = fill(&mut tools, 60);
    assert!(ids.len() >= 3, "{ids:?}");
    assert!(["limit", "unavailable"].contains(&&*refusal.kind), "{refusal:?}");
    check_service_continues(&mut tools, ids);
}

#[test]
fn no_descriptor_left_in_the_keeper() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    tools.run(&["cat"]);
    set_limit(keeper(&place), "--nofile=40");
    let (mut ids, refusal) = fill(&mut tools, 40);
    ids.insert(0, "p1".into());
    assert_eq!(refusal.kind, "limit", "{refusal:?}");
    assert!(refusal.message.contains("cannot"), "{refusal:?}");
    check_service_continues(&mut tools, ids);
}

fn set_limit(pid: u32, limit: &str) {
    #[expect(clippy::disallowed_methods, reason = "tests ask the tools of the trade")]
    let mut command = Command::new("prlimit");
    assert!(command.arg(format!("--pid={pid}")).arg(limit).status().unwrap().success());
}

#[test]
fn no_process_left_to_fork() {
    let place = Place::of_another_user();
    // This user has the server's threads, the keeper, and two processes per pane.
    let mut command = place.command(Path::new("prlimit"));
    let entry = start(command.arg("--nproc=30").arg(place.binary()).args(["serve", "--json"]));
    let mut tools = place.user().unwrap().does(|| ToolClient::at(&entry.socket));
    let (ids, refusal) = fill(&mut tools, 40);
    assert!(ids.len() > 5, "{ids:?}");
    assert_eq!(refusal.kind, "limit", "{refusal:?}");
    assert!(refusal.message.contains("start a process"), "{refusal:?}");
    check_service_continues(&mut tools, ids);
}

/// The kernel's limit of terminals, restored on drop. It applies to the whole machine: `unshare`
/// below creates a namespace that only this test sees.
#[test]
fn no_terminal_left() {
    let place = Place::new();
    // A private mount, visible to its child processes, with room for few terminals.
    let script = "mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,max=5 devpts /dev/pts \
        && mount --bind /dev/pts/ptmx /dev/ptmx && exec \"$0\" serve --json";
    let mut command = place.command(Path::new("unshare"));
    let entry = start(command.args(["--mount", "sh", "-c", script]).arg(place.binary()));
    let mut tools = ToolClient::at(&entry.socket);
    let (ids, refusal) = fill(&mut tools, 10);
    assert_eq!(ids.len(), 5);
    assert_eq!(refusal.kind, "limit", "{refusal:?}");
    assert!(refusal.message.contains("terminal"), "{refusal:?}");
    check_service_continues(&mut tools, ids);
}
