//! Servers that die while they write: the pad has its old or its new content, with the right
//! revision, and acknowledged writes are kept.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::tool_client::{ToolClient, files, short_or_long, string, writing};
use crate::support::{Place, Rng, Running, Spawned};

/// Content that shows a torn write: many identical lines.
fn content_of(number: usize) -> String {
    format!("{number}\n").repeat(1_000 + number % 7 * 1_000)
}

/// A version that the test wrote: its number and revision.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    number: usize,
    revision: String,
}

/// The pad's current version; fails the test if it is torn or not one of ours.
#[track_caller]
fn found(tools: &mut ToolClient, place: &Place) -> Version {
    let pad = tools.read("plan");
    let content = string(&pad["content"]);
    let number = content.lines().next().unwrap().parse().unwrap();
    assert!(content == content_of(number), "{number} is torn: {} bytes", content.len());
    assert_eq!(pad["changed_by"], "external");
    assert_eq!(files(place), ["plan.md"], "nothing is left beside it");
    Version { number, revision: string(&pad["revision"]) }
}

/// Writes versions until the server is gone; returns the last acknowledged one. Reports how long
/// each write took, as long as somebody listens.
fn write_on(tools: &mut ToolClient, mut last: Version, took: &SyncSender<Duration>) -> Version {
    loop {
        let begun = Instant::now();
        let number = last.number + 1;
        let arguments = writing("plan", &content_of(number), Some(&last.revision));
        let Some(answer) = tools.try_call("scratchpad_write", arguments) else { return last };
        last = Version { number, revision: string(&answer.unwrap()["revision"]) };
        let _ = took.try_send(begun.elapsed());
    }
}

/// Waits for a random time of up to twice this, independent of the server's work.
fn moment(rng: &mut Rng, long: Duration) {
    let (_never, nothing) = sync_channel::<()>(0);
    let most = usize::try_from(long.as_micros()).unwrap() * 2 + 1;
    let _ = nothing.recv_timeout(Duration::from_micros(rng.within(0..most) as u64));
}

/// The pad after a crash: the last acknowledged version, or the one after it.
#[track_caller]
fn check_survived(acknowledged: &Version, now: &Version) {
    if now.number == acknowledged.number {
        assert_eq!(now, acknowledged, "the old content has its old revision");
    } else {
        assert_eq!(now.number, acknowledged.number + 1);
        assert_ne!(now.revision, acknowledged.revision);
    }
}

/// Creates the pad with a separate server.
fn begin(place: &Place) -> (Spawned, ToolClient, Version) {
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    tools.ok("scratchpad_write", writing("plan", &content_of(1), None));
    let first = found(&mut tools, place);
    (server, tools, first)
}

#[test]
fn the_server_is_killed_while_it_writes() {
    let place = Place::new();
    let mut rng = Rng::new(11);
    let (mut server, mut tools, mut last) = begin(&place);
    let times = short_or_long(50, 1_000);
    for _ in 0..times {
        let process = server.process();
        let (took, write) = sync_channel(1);
        let writer = std::thread::spawn(move || write_on(&mut tools, last, &took));
        // Anywhere in one of the writes after the first.
        moment(&mut rng, write.recv().unwrap());
        process.signal(Signal::KILL);
        process.wait();
        let acknowledged = writer.join().unwrap();
        server = place.serve();
        tools = ToolClient::at(&server.socket());
        last = found(&mut tools, &place);
        check_survived(&acknowledged, &last);
    }
    assert!(last.number > times, "each has written");
}

/// The system calls of one thread on files or descriptors, in order.
const CALLS: &str = "%file,%desc";

/// `strace`, attached to a server.
struct Tracer(Child);

impl Tracer {
    fn attach(place: &Place, server: &Spawned, options: &[&str]) -> Self {
        let mut strace = place.command(Path::new("strace"));
        strace.arg("-f").args(options).arg(format!("-p{}", server.pid()));
        let mut child = strace.stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut printed).unwrap();
        assert!(printed.contains("attached"), "strace: {printed}");
        Self(child)
    }

    /// Detaches from a living server and writes everything it has recorded.
    fn finish(mut self) {
        Running::of(self.0.id()).signal(Signal::TERM);
        self.0.wait().unwrap();
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The traced process continues, or exits. If strace is terminated while that process dies,
        // it may never exit.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The system calls with which a server writes a pad: each by its name and its number among those
/// of that name.
fn calls_of(place: &Place, arguments: Value) -> Vec<(String, usize)> {
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let record = place.path("calls");
    let trace = format!("trace={CALLS}");
    let options = ["-o", record.to_str().unwrap(), "-e", &trace];
    let tracer = Tracer::attach(place, &server, &options);
    tools.ok("scratchpad_write", arguments);
    tracer.finish();
    let record = std::fs::read_to_string(record).unwrap();
    let begun = record.lines().filter_map(|line| {
        let (thread, call) = line.split_once(' ')?;
        let (name, arguments) = call.trim_start().split_once('(')?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then_some((thread, name, arguments))
    });
    // The thread that renames the file, from its first access to the pads: it may have had other
    // work before, of the server's start. The others only wait for it.
    let (writer, ..) = begun.clone().find(|(_, name, _)| *name == "renameat2").unwrap();
    let of_writer = begun.filter(|(thread, ..)| *thread == writer);
    let of_write = of_writer.skip_while(|(.., arguments)| !arguments.contains("/scratchpads"));
    let names: Vec<&str> = of_write.map(|(_, name, _)| name).collect();
    let nth = |at: usize| names[..=at].iter().filter(|name| **name == names[at]).count();
    (0..names.len()).map(|at| (names[at].to_owned(), nth(at))).collect()
}

/// Writes a pad with servers that die at the first of these calls, at the second, and so on.
/// `check` gets the response and the next server. Returns how many died.
fn die_at_each(
    place: &Place,
    calls: &[(String, usize)],
    arguments: impl Fn() -> Value,
    mut check: impl FnMut(Option<Value>, &mut ToolClient),
) -> usize {
    let mut died = 0;
    for (call, nth) in calls {
        let server = place.serve();
        let mut tools = ToolClient::at(&server.socket());
        let process = server.process();
        let (trace, inject) =
            (format!("trace={call}"), format!("inject={call}:signal=KILL:when={nth}"));
        let options = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
        let tracer = Tracer::attach(place, &server, &options);
        let answer = tools.try_call("scratchpad_write", arguments()).map(Result::unwrap);
        drop(tracer);
        if answer.is_none() {
            process.wait();
        }
        died += usize::from(process.is_gone());
        let server = place.serve();
        check(answer, &mut ToolClient::at(&server.socket()));
    }
    died
}

#[test]
fn the_server_is_killed_at_every_call_of_a_write() {
    let place = Place::new();
    let (_server, mut tools, first) = begin(&place);
    let calls = calls_of(&place, writing("plan", &content_of(2), Some(&first.revision)));
    let last = std::cell::RefCell::new(found(&mut tools, &place));
    let next = || {
        let Version { number, revision } = last.borrow().clone();
        writing("plan", &content_of(number + 1), Some(&revision))
    };
    let mut happened = 0;
    let died = die_at_each(&place, &calls, next, |answer, tools| {
        let now = found(tools, &place);
        check_survived(&last.borrow(), &now);
        if let Some(answer) = answer {
            assert_eq!(answer["revision"], *now.revision, "an acknowledged write survives");
        }
        happened += usize::from(now != *last.borrow());
        last.replace(now);
    });
    check_covered(&calls, died, happened);
}

#[test]
fn the_server_is_killed_at_every_call_of_a_creation() {
    let place = Place::new();
    let create = || writing("plan", &content_of(1), None);
    let remove = || std::fs::remove_file(super::tool_client::file(&place, "plan")).unwrap();
    let calls = calls_of(&place, create());
    remove();
    let mut created = 0;
    let died = die_at_each(&place, &calls, create, |answer, tools| {
        if tools.pads().is_empty() {
            assert_eq!((answer, files(&place)), (None, Vec::new()));
            return;
        }
        let now = found(tools, &place);
        if let Some(answer) = answer {
            assert_eq!(answer["revision"], *now.revision, "an acknowledged write survives");
        }
        created += 1;
        remove();
    });
    check_covered(&calls, died, created);
}

/// Nearly every call was a crash (waking another thread is not always needed), some before the pad
/// had its new content, some after.
#[track_caller]
fn check_covered(calls: &[(String, usize)], died: usize, happened: usize) {
    for (call, times) in [("fsync", 4), ("write", 2), ("renameat2", 1)] {
        let seen = calls.iter().filter(|(name, _)| name == call).count();
        assert!(seen >= times, "{call}: {seen} times in {calls:?}");
    }
    assert!(died + 3 >= calls.len(), "{died} of {}: {calls:?}", calls.len());
    assert!(happened > 1 && happened + 10 < calls.len(), "{happened} of {}", calls.len());
}
