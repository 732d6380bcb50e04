//! Verbs that stay connected while the server is replaced, killed or ended.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use super::server;
use crate::support::tool_client::until;
use crate::support::{Place, Running};

/// A verb in the background.
struct Verb {
    child: Child,
    printed: BufReader<ChildStdout>,
}

impl Verb {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut verb = place.patterm(arguments);
        let mut child = verb.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        Self { child, printed }
    }

    /// Reads lines up to one that contains a text.
    #[track_caller]
    fn until(&mut self, text: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(|line| !line.contains(text)) {
            let mut line = String::new();
            assert!(self.printed.read_line(&mut line).unwrap() > 0, "no {text} in {lines:?}");
            lines.push(line);
        }
        lines
    }

    /// Waits until it has sent a request and waits for the answer.
    fn until_connected(self) -> Self {
        let folder = format!("/proc/{}/fd", self.child.id());
        let is_socket = |path: &std::path::Path| {
            std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        };
        until("a connection", || {
            let mut files = std::fs::read_dir(&folder).unwrap().flatten();
            files.any(|file| is_socket(&file.path())).then_some(())
        });
        self
    }

    /// Waits for its end; returns its exit code, what else it printed, and its errors.
    fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let lines = self.printed.lines().map(Result::unwrap).collect();
        self.child.stdout = None;
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), lines, String::from_utf8(output.stderr).unwrap())
    }
}

fn place() -> Place {
    let place = Place::new();
    let file = "[processes.slow]\n\
         command = 'echo begin; read line; echo READY $line; read line; echo over'\n\
         ready = { pattern = '^READY' }\n";
    std::fs::write(place.path("project/patterm.toml"), file).unwrap();
    place.run(&["trust", "--yes"]);
    place
}

#[track_caller]
fn check_that_everything_continues(replace: impl Fn(&Place)) {
    let place = place();
    let mut up = Verb::start(&place, &["up", "--wait"]);
    up.until("started");
    let waiting = Verb::start(&place, &["wait", "slow", "READY"]).until_connected();
    let mut one = Verb::start(&place, &["logs", "-f", "slow"]);
    let mut all = Verb::start(&place, &["logs", "-f"]);
    let mut events = Verb::start(&place, &["events", "-f", "--json"]);
    let seq = |line: &String| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap();
    let first: Vec<_> = events.until("process.started").iter().map(seq).collect();
    one.until("begin");
    all.until("begin");
    let before = server(&place).pid;
    replace(&place);
    until("another server", || {
        let listed: Vec<Value> = serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
        listed.iter().find(|entry| entry["pid"] != before && !entry["panes"].is_null()).cloned()
    });
    place.run(&["send", "slow", "now"]);
    let (code, _, errors) = up.end();
    assert_eq!(code, Some(0), "up --wait: {errors}");
    let (code, lines, errors) = waiting.end();
    assert_eq!((code, lines), (Some(0), vec!["READY now".to_owned()]), "wait: {errors}");
    all.until("READY now");
    place.run(&["send", "slow", "end"]);
    let (code, lines, errors) = one.end();
    assert_eq!(code, Some(0), "logs: {errors}");
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("begin"), count("READY"), count("over")), (0, 1, 1), "{lines:?}");
    let lines = all.until("over");
    assert!(!lines.iter().any(|line| line.contains("READY now")), "{lines:?}");
    let rest: Vec<_> = events.until("process.exited").iter().map(seq).collect();
    let numbers = [first, rest].concat();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    place.run(&["kill"]);
    let (code, _, errors) = all.end();
    assert_eq!(code, Some(0), "logs of all: {errors}");
    let (code, _, errors) = events.end();
    assert_eq!(code, Some(0), "events: {errors}");
    assert!(errors.contains("the server has ended"), "{errors}");
}

#[test]
fn verbs_that_wait_continue_with_the_next_server() {
    check_that_everything_continues(|place| drop(place.run(&["upgrade"])));
}

#[test]
fn verbs_that_wait_continue_after_a_server_was_killed() {
    check_that_everything_continues(|place| {
        let process = Running::of(server(place).pid);
        process.signal(rustix::process::Signal::KILL);
        process.wait();
    });
}

#[test]
fn verbs_that_wait_say_what_came_of_it_when_everything_is_ended() {
    let place = place();
    let mut up = Verb::start(&place, &["up", "--wait"]);
    up.until("started");
    let waiting = Verb::start(&place, &["wait", "slow", "READY"]).until_connected();
    let mut one = Verb::start(&place, &["logs", "-f", "slow"]);
    one.until("begin");
    place.run(&["kill"]);
    let (code, _, errors) = up.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("patterm's server is shutting down"), "{errors}");
    let (code, _, errors) = waiting.end();
    assert_eq!(code, Some(4), "{errors}");
    let (code, _, errors) = one.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(place.run(&["ls", "--json"]).trim(), "[]", "none of them has started a server");
}

#[test]
fn without_programs_events_are_followed_across_an_upgrade() {
    let place = Place::new();
    place.serve();
    let mut events = Verb::start(&place, &["events", "-f"]);
    events.until("system.started");
    place.run(&["upgrade"]);
    events.until("system.started");
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    events.until("pad.created");
    place.run(&["kill"]);
    assert_eq!(events.end().0, Some(0));
}
