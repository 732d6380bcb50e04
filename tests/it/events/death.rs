//! Servers that are killed while they work: everything that was acknowledged has its event, exactly once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::{all, check_numbers, of_type};
use crate::support::tool_client::{ToolClient, long};
use crate::support::{Place, Rng};

/// What a client was told is done.
#[derive(Default)]
struct Acknowledged {
    processes: Vec<String>,
    timers: Vec<String>,
    pads: Vec<String>,
    messages: Vec<u64>,
}

/// A client that survives its server.
struct Worker(BufReader<UnixStream>);

impl Worker {
    /// The result of a tool, or its error; `None` if the server is gone before it responds.
    fn try_call(&mut self, tool: &str, arguments: &Value) -> Option<Result<Value, Value>> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments});
        writeln!(self.0.get_mut(), "{request}").ok()?;
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|_| line.ends_with('\n'))?;
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        Some(match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(error),
        })
    }
}

/// Does things until the server is gone.
fn work(tools: &mut Worker, agent: &str, done: &mut Acknowledged, round: usize) {
    for step in 0.. {
        let pad = format!("pad-{round}-{step}");
        let timer = json!({"seconds": 9999, "owner_process_id": agent, "body": "later"});
        let message = json!({"target_process_id": agent, "message": format!("{round} {step}")});
        let calls = [
            ("timer_set", timer),
            ("scratchpad_write", json!({"name": pad, "content": "x"})),
            ("send_message", message),
            ("spawn_process", json!({"argv": ["true"]})),
        ];
        for (tool, arguments) in calls {
            let Some(answer) = tools.try_call(tool, &arguments) else { return };
            // A refusal, such as a full queue, is no event.
            let Ok(answer) = answer else { continue };
            match tool {
                "timer_set" => done.timers.push(answer["timer_id"].as_str().unwrap().to_owned()),
                "scratchpad_write" => done.pads.push(pad.clone()),
                "send_message" => done.messages.push(answer["message_id"].as_u64().unwrap()),
                _ => done.processes.push(answer["process_id"].as_str().unwrap().to_owned()),
            }
        }
    }
}

/// How often each value of a member is recorded by events of a type.
fn counts(events: &[Value], kind: &str, member: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in of_type(events, kind) {
        let value = if member == "process_id" { &event[member] } else { &event["data"][member] };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        *counts.entry(value).or_default() += 1;
    }
    counts
}

#[track_caller]
fn check(events: &[Value], done: &Acknowledged) {
    let messages: Vec<String> = done.messages.iter().map(ToString::to_string).collect();
    let expected = [
        ("timer.set", "timer_id", &done.timers),
        ("pad.created", "name", &done.pads),
        ("message.accepted", "message_id", &messages),
        ("process.created", "process_id", &done.processes),
        ("process.started", "process_id", &done.processes),
    ];
    for (kind, member, values) in expected {
        let counts = counts(events, kind, member);
        for value in values {
            assert_eq!(counts.get(value), Some(&1), "{kind} of {value}");
        }
        let repeated = counts.iter().find(|(_, count)| **count > 1);
        assert_eq!(repeated, None, "{kind} is recorded twice");
    }
}

#[test]
fn everything_acknowledged_has_its_event_once_after_kills() {
    let place = Place::new();
    let mut rng = Rng::new(18);
    let mut done = Acknowledged::default();
    let mut server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let agent = tools.run(&["cat"]);
    let (mut closed, mut cancelled) = (0, 0);
    for round in 0..if long() { 200 } else { 10 } {
        let process = server.process();
        let millis = rng.within(5..300) as u64;
        let killer = std::thread::spawn(move || {
            let (_never, nothing) = std::sync::mpsc::sync_channel::<()>(0);
            let _ = nothing.recv_timeout(std::time::Duration::from_millis(millis));
            process.signal(rustix::process::Signal::KILL);
            process.wait();
        });
        let stream = UnixStream::connect(server.socket()).unwrap();
        work(&mut Worker(BufReader::new(stream)), &agent, &mut done, round);
        killer.join().unwrap();
        server = place.serve();
        tools = ToolClient::at(&server.socket());
        // Limits on both would refuse more of them.
        for id in &done.processes[closed..] {
            tools.close(id);
        }
        for id in &done.timers[cancelled..] {
            tools.ok("timer_cancel", json!({"timer_id": id}));
        }
        (closed, cancelled) = (done.processes.len(), done.timers.len());
        let (events, _) = all(&mut tools);
        check_numbers(&events);
        check(&events, &done);
    }
    let verdict = place.run(&["events", "verify"]);
    assert!(verdict.contains("; nothing is damaged"), "{verdict}");
}
