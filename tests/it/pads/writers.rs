//! Many writers of one pad: no update is lost, whoever wins.

use std::collections::BTreeMap;

use serde_json::json;

use super::tool_client::{ToolClient, short_or_long, string, tools, writing};

const WRITERS: usize = 64;

/// A pad with one counter per writer, as text.
fn text_of(counters: &BTreeMap<usize, usize>) -> String {
    counters.iter().map(|(writer, count)| format!("{writer}: {count}\n")).collect()
}

fn counters_of(text: &str) -> BTreeMap<usize, usize> {
    let line = |line: &str| {
        let (writer, count) = line.split_once(": ").unwrap();
        (writer.parse().unwrap(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// Reads, increments its counter, and writes unless somebody was faster; returns how often it
/// succeeded.
fn count_up(tools: &mut ToolClient, writer: usize, times: usize) -> usize {
    let mut written = 0;
    let mut pad = tools.read("counters");
    for _ in 0..times {
        let mut counters = counters_of(&string(&pad["content"]));
        *counters.entry(writer).or_default() += 1;
        let revision = string(&pad["revision"]);
        let arguments = writing("counters", &text_of(&counters), Some(&revision));
        match tools.call("scratchpad_write", arguments) {
            Ok(_) => written += 1,
            Err(error) => assert_eq!(error["kind"], "conflict", "{error}"),
        }
        pad = tools.read("counters");
    }
    written
}

#[test]
fn many_guarded_writers_lose_no_update() {
    let (_place, server, mut tools) = tools();
    tools.ok("scratchpad_write", writing("counters", "", None));
    let times = short_or_long(100, 1_000);
    let written: BTreeMap<usize, usize> = std::thread::scope(|scope| {
        let server = &server;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    (writer, count_up(&mut ToolClient::at(server.socket()), writer, times))
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let expected: BTreeMap<_, _> = written.into_iter().filter(|(_, count)| *count > 0).collect();
    assert!(expected.values().sum::<usize>() >= times, "somebody wins every time");
    assert_eq!(counters_of(&tools.content("counters")), expected);
}

#[test]
fn many_appenders_lose_nothing_and_mix_nothing() {
    let (_place, server, mut tools) = tools();
    let times = short_or_long(20, 200);
    std::thread::scope(|scope| {
        let server = &server;
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut tools = ToolClient::at(server.socket());
                for turn in 0..times {
                    tools.append("log", &format!("{writer} {turn}\n"));
                }
            });
        }
    });
    let mut next = BTreeMap::new();
    for line in tools.content("log").lines() {
        let (writer, turn) = line.split_once(' ').unwrap();
        let expected: &mut usize = next.entry(writer.to_owned()).or_default();
        assert_eq!(turn.parse(), Ok(*expected), "{line}");
        *expected += 1;
    }
    assert_eq!(next.len(), WRITERS);
    assert!(next.values().all(|count| *count == times));
}

/// Only calls that write wait for the disk.
#[test]
fn others_are_answered_while_pads_are_written() {
    let (_place, server, mut tools) = tools();
    let large = "x".repeat(500 << 10);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (server, large) = (&server, &large);
                scope.spawn(move || {
                    let mut tools = ToolClient::at(server.socket());
                    tools.ok("scratchpad_write", writing(&format!("pad {writer}"), large, None));
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            tools.ok("whoami", json!({}));
        }
    });
    assert_eq!(tools.pads().len(), 8);
}
