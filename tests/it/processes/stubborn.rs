//! Programs that refuse to exit, with orphaned children: all of them are gone in time, and no other
//! process is signalled.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::faults::keeper;
use crate::support::tool_client::{ToolClient, alive, until};
use crate::support::{Place, Running};

/// The grace period for a program, and the tolerance (design/bars.md).
const GRACE: Duration = Duration::from_secs(5);
const MORE: Duration = Duration::from_millis(500);

/// Ignores all signals that can be ignored, and so do its children: in its group, in a session of
/// their own, and forked twice.
const STUBBORN: &str = "trap '' HUP INT TERM
    (while :; do sleep 1000; done) &
    setsid sh -c 'trap \"\" HUP INT TERM; while :; do sleep 1000; done' &
    (setsid sh -c '(trap \"\" HUP INT TERM; while :; do sleep 1000; done) &' &)
    echo up; while :; do sleep 1000; done";

/// How many processes that script has: four shells, and one child of each.
const PROCESSES: usize = 8;

/// All descendants of a process, according to the kernel.
fn below(top: u32) -> BTreeSet<u32> {
    let children = |pid: &u32| -> Vec<u32> {
        let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        listed.unwrap_or_default().split(' ').filter_map(|pid| pid.parse().ok()).collect()
    };
    let mut found = BTreeSet::new();
    let mut next = children(&top);
    while let Some(pid) = next.pop() {
        next.extend(children(&pid));
        found.insert(pid);
    }
    found
}

/// Starts one; returns its processes and their init.
fn start(tools: &mut ToolClient) -> (String, u32, BTreeSet<u32>) {
    let id = tools.sh(STUBBORN);
    tools.wait(&id, "up");
    let pid = tools.status(&id)["pid"].as_u64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let init = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    // Intermediate forks have exited by then.
    let sleeps = |pid: &&u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "sleep")
    };
    let is_all = |all: &BTreeSet<u32>| {
        all.len() == PROCESSES && all.iter().filter(sleeps).count() == PROCESSES / 2
    };
    let all = until("all of them", || Some(below(init)).filter(is_all));
    (id, init, all)
}

#[test]
fn all_are_gone_within_the_grace_time_and_half_a_second() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    // A busy machine can delay any one of them; a fault of patterm would delay all.
    let mut took = Vec::new();
    for tool in ["stop_process", "close_process", "stop_process"] {
        let (id, init, all) = start(&mut tools);
        let begun = Instant::now();
        tools.ok(tool, json!({"process_id": id}));
        took.push(begun.elapsed());
        let left: Vec<_> = all.iter().filter(|pid| alive(**pid)).collect();
        assert!(left.is_empty(), "{tool} has answered, and {left:?} live");
        let reaped = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
        assert!(all.iter().all(reaped), "no zombie is left below {init}");
        if took.iter().any(|took| *took <= GRACE + MORE) {
            break;
        }
    }
    assert!(took.iter().any(|took| *took <= GRACE + MORE), "{took:?}");
}

#[test]
fn no_other_process_is_signalled() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let neighbour = tools.run(&["cat"]);
    let record = place.path("signals");
    let mut strace = place.command(Path::new("strace"));
    strace.args(["-f", "-e", "trace=kill,tkill,tgkill,pidfd_send_signal", "-e", "signal=none"]);
    strace.arg("-o").arg(&record).arg(format!("-p{}", keeper(&place)));
    let mut tracer = strace.stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    BufReader::new(tracer.stderr.as_mut().unwrap()).read_line(&mut printed).unwrap();
    assert!(printed.contains("attached"), "strace: {printed}");
    let mut own = BTreeSet::new();
    for tool in ["stop_process", "close_process"] {
        let (id, _, all) = start(&mut tools);
        tools.ok(tool, json!({"process_id": id}));
        own.extend(all);
    }
    tools.line(&neighbour, "untouched");
    tools.wait(&neighbour, "untouched");
    Running::of(tracer.id()).signal(Signal::TERM);
    tracer.wait().unwrap();
    let record = std::fs::read_to_string(record).unwrap();
    let mut signals = 0;
    for line in record.lines().filter(|line| line.contains("kill(")) {
        assert!(line.contains(" kill("), "one that names a process: {line}");
        let target = line.split("kill(").nth(1).unwrap().split(',').next().unwrap();
        // A group is named by its leader; never all processes, and never our own group.
        let target: u32 = target.trim_start_matches('-').parse().unwrap();
        assert!(own.contains(&target), "{line}\nis none of {own:?}");
        signals += 1;
    }
    assert!(signals >= PROCESSES, "it was looked at: {record}");
}
