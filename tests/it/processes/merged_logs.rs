//! `patterm logs` of several processes, merged by time.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use chrono::{DateTime, SecondsFormat};
use patterm_panes::process::ProcessId;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running};

/// Prints each line it reads, later than the line before by more than the exactness of times.
const PARROT: &str = "stty -echo; while read line; do sleep 0.03; echo \"$line\"; done";

fn sh(place: &Place, name: &str, script: &str) -> String {
    let id = place.run(&["run", "--name", name, "--", "sh", "-c", script]);
    id.trim().to_owned()
}

/// Three processes that print what they are told.
fn parrots(place: &Place) {
    for name in ["one", "two", "six"] {
        sh(place, name, &format!("echo ready; {PARROT}"));
        place.run(&["wait", name, "ready"]);
    }
}

/// Lets a process print a line.
fn say(place: &Place, name: &str, line: &str) {
    place.run(&["send", name, line]);
    place.run(&["wait", name, &format!("^{line}$")]);
}

fn lines_with(text: &str, what: &str) -> Vec<String> {
    text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
}

/// The server's process.
fn server(place: &Place) -> Running {
    let listed: Value = serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
    let own = listed.as_array().unwrap().iter().find(|e| e["key"] == place.project().key());
    Running::of(own.unwrap()["pid"].as_u64().unwrap().try_into().unwrap())
}

/// A verb that keeps printing.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn new(place: &Place, arguments: &[&str]) -> Self {
        let mut child = place.patterm(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads until a line contains a text; returns the lines.
    fn until(&mut self, text: &str) -> Vec<String> {
        let mut read = Vec::new();
        while !read.last().is_some_and(|line: &String| line.contains(text)) {
            read.push(self.lines.next().unwrap_or_else(|| panic!("no {text}: {read:?}")).unwrap());
        }
        read
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn lines_of_three_processes_are_in_the_order_in_which_they_were_printed() {
    let place = Place::new();
    parrots(&place);
    let said = [("two", "l1"), ("one", "l2"), ("six", "l3"), ("one", "l4"), ("two", "l5")];
    for (name, line) in said {
        say(&place, name, line);
    }
    let later = [("six", "l6"), ("one", "l7"), ("six", "l8")];
    for (name, line) in later {
        say(&place, name, line);
    }
    let middle = between(&place, "l5", "l6");
    let all: Vec<_> = said.into_iter().chain(later).map(|(n, l)| format!("{n} | {l}")).collect();
    let expected = |from: usize| all[from..].to_vec();
    assert_eq!(lines_with(&place.run(&["logs"]), " | l"), expected(0));
    assert_eq!(lines_with(&place.run(&["logs", "--since", &middle]), " | "), expected(5));
    assert_eq!(lines_with(&place.run(&["logs", "--since", "1h"]), " | l"), expected(0));
    // The last line of each process.
    let tail = place.run(&["logs", "--tail", "1"]);
    assert_eq!(tail.lines().collect::<Vec<_>>(), ["two | l5", "one | l7", "six | l8"]);
    let both = place.run(&["logs", "--since", &middle, "--tail", "1", "one", "six"]);
    assert_eq!(both.lines().collect::<Vec<_>>(), ["one | l7", "six | l8"]);
    assert_eq!(place.run(&["logs", "--tail", "0"]), "");
    // One process: no names; its whole output in the old form.
    assert_eq!(place.run(&["logs", "two", "-n", "2"]), "l1\nl5\n");
    assert_eq!(place.run(&["logs", "two"]), "ready\nl1\nl5\n");
    times_and_json_agree(&place, &middle);
    // The same from disk, without a server.
    let before = place.run(&["logs", "--times"]);
    place.run(&["kill", "--now"]);
    assert_eq!(place.run(&["logs", "--times"]), before);
    assert_eq!(place.run(&["ls", "--json"]), "[]\n", "no server was started");
}

/// A time between those of two lines. The clock of the test would not do: a line is on the screen before its end is
/// read, which decides its time.
fn between(place: &Place, first: &str, second: &str) -> String {
    let json = place.run(&["logs", "--json"]);
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = |text: &str| {
        let line = lines.iter().find(|line| line["text"] == text).unwrap();
        DateTime::parse_from_rfc3339(line["time"].as_str().unwrap()).unwrap().to_utc()
    };
    let middle = time(first) + (time(second) - time(first)) / 2;
    middle.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn times_and_json_agree(place: &Place, middle: &str) {
    let json = place.run(&["logs", "--json"]);
    let json: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times: Vec<_> = json.iter().map(|line| line["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let after: Vec<_> = json.iter().filter(|line| line["time"].as_str() > Some(middle)).collect();
    assert_eq!(after.len(), 3);
    assert_eq!((&after[0]["process_id"], &after[0]["name"]), (&"p3".into(), &"six".into()));
    let mut utc = place.patterm(&["logs", "--times"]);
    let text = String::from_utf8(utc.env("TZ", "UTC").output().unwrap().stdout).unwrap();
    for (line, json) in text.lines().zip(&json) {
        let time = json["time"].as_str().unwrap().replace('Z', "+00:00");
        let (name, said) = (json["name"].as_str().unwrap(), json["text"].as_str().unwrap());
        assert_eq!(line, format!("{name} | {time} {said}"));
    }
}

#[test]
fn new_processes_are_followed_and_unfinished_lines_wait() {
    let place = Place::new();
    sh(&place, "old", &format!("echo before; {PARROT}"));
    place.run(&["wait", "old", "before"]);
    let mut all = Follower::new(&place, &["logs", "-f"]);
    assert_eq!(all.until("before"), ["old | before"]);
    sh(&place, "new", "printf half; read x; echo ' and half'; printf 'no end'");
    place.run(&["wait", "new", "half"]);
    say(&place, "old", "meanwhile");
    assert_eq!(all.until("meanwhile"), ["old | meanwhile"], "the other line is not complete");
    place.run(&["send", "new", ""]);
    let rest = all.until("no end");
    // The terminal shows the line end that was typed.
    assert_eq!(rest, ["new | half", "new |  and half", "new | no end"]);
    // Named processes are followed to their end.
    let mut named = Follower::new(&place, &["logs", "-f", "--tail", "9", "old", "new"]);
    assert_eq!(named.until("no end").len(), 5);
    place.run(&["stop", "old"]);
    assert!(named.child.wait().unwrap().success());
    // A restarted process continues.
    place.run(&["restart", "new"]);
    place.run(&["wait", "new", "half"]);
    place.run(&["send", "new", ""]);
    assert_eq!(all.until("no end").last().unwrap(), "new | no end");
}

#[test]
fn no_line_is_lost_or_doubled_when_the_server_is_killed() {
    let place = Place::new();
    let script = "n=0; while [ $n -lt 400 ]; do n=$((n+1)); echo count $n; sleep 0.01; done; \
                  echo finished; read x";
    for name in ["left", "right"] {
        sh(&place, name, script);
    }
    let mut all = Follower::new(&place, &["logs", "-f"]);
    let mut read = all.until("count 40");
    for until in ["count 110", "count 190", "count 270"] {
        let server = server(&place);
        server.signal(Signal::KILL);
        server.wait();
        read.extend(all.until(until));
    }
    while read.iter().filter(|line| line.contains("finished")).count() < 2 {
        read.extend(all.until("finished"));
    }
    for name in ["left ", "right"] {
        let counted: Vec<_> = read.iter().filter(|line| line.starts_with(name)).collect();
        let expected = (1..=400).map(|n| format!("{name} | count {n}"));
        let expected: Vec<_> = expected.chain([format!("{name} | finished")]).collect();
        assert!(counted.iter().copied().eq(&expected), "{counted:#?}");
    }
    // Merged anew, the times are still in order.
    let json = place.run(&["logs", "--json"]);
    let time = |line: &str| serde_json::from_str::<Value>(line).unwrap()["time"].clone();
    let times: Vec<_> = json.lines().map(|line| time(line).as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted() && times.len() == 802, "{}", times.len());
}

#[test]
fn any_bytes_are_lines() {
    let place = Place::new();
    // Without echo: the terminal answers queries among the random bytes, and the answers are not output.
    let script = "stty -echo; echo begin; head -c 200000 /dev/urandom; printf '\\030\\n\\033[2J\\033]0;title\\007'; \
                  head -c 150000 /dev/zero | tr '\\0' x; echo; printf '10%%\\r20%%\\r\\n'; echo end";
    sh(&place, "noise", script);
    // The bytes may hide the end from the terminal, but not from the log.
    place.run(&["logs", "-f", "--times", "noise"]);
    let text = place.run(&["logs"]);
    assert!(!text.contains('\u{1b}') && !text.contains("title"));
    assert_eq!(text.lines().last(), Some("noise | end"));
    assert_eq!(text.lines().nth_back(1), Some("noise | 20%"), "as a terminal shows it");
    let xs: usize = text.lines().map(|line| line.matches("xxxxxxxx").count() * 8).sum();
    assert!(xs >= 149_000, "a long line comes in parts: {xs}");
    for line in place.run(&["logs", "--json"]).lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["time"].is_string());
    }
}

#[test]
fn output_of_an_older_version_has_no_time_and_comes_first() {
    let place = Place::new();
    let id = sh(&place, "old", "echo printed; cat");
    place.run(&["wait", "old", "printed"]);
    place.run(&["kill", "--now"]);
    // 0.1.0 leaves this part of the header empty.
    let log = place.state().file("output").join(ProcessId::of(&id).as_str());
    let log = log.join("00000000000000000000.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[64..4096].fill(0);
    std::fs::write(&log, bytes).unwrap();
    sh(&place, "new", "echo now");
    place.run(&["wait", "new", "now"]);
    let text = place.run(&["logs", "--times"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("old | - ") && lines[0].ends_with(" printed"), "{text}");
    assert!(lines[1].starts_with("new | 20"), "{text}");
    assert_eq!(place.run(&["logs", "--since", "1h"]), "new | now\n");
}

#[test]
fn wrong_usage_is_explained() {
    let place = Place::new();
    for (arguments, text) in [
        (&["logs", "--raw"][..], "required"),
        (&["logs", "--raw", "a", "b"], "--raw prints the bytes of one process"),
        (&["logs", "--since", "yesterday"], "10m"),
        (&["logs", "--tail", "all"], "--tail"),
        (&["logs", "a", "--raw", "--times"], "cannot be used with"),
    ] {
        let output = place.patterm(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(text), "{arguments:?}: {message}");
    }
    assert_eq!(place.run(&["logs"]), "", "a project without processes");
}
