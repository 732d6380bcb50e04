//! Reading events: with tools, with the verb, and with who caused them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{all, check_numbers, of_type};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, tools};

#[test]
fn what_happens_to_a_process_is_recorded_with_its_actor() {
    let (_place, server, mut tools) = tools();
    let (lead, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let id = agent.run(&["cat"]);
    agent.line(&id, "secret text");
    agent.wait(&id, "secret text");
    agent.ok("rename_process", json!({"process_id": id, "name": "copycat"}));
    agent.ok("stop_process", json!({"process_id": id}));
    tools.ok("start_process", json!({"process_id": id}));
    tools.ok("request_human_attention", json!({"process_id": id, "reason": "look"}));
    tools.close(&id);
    let (events, dropped) = all(&mut tools);
    assert_eq!(dropped, 0);
    check_numbers(&events);
    let about: Vec<_> = events.iter().filter(|event| event["process_id"] == id.as_str()).collect();
    let kinds: Vec<_> = about.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "process.created",
        "process.started",
        "input.sent",
        "process.renamed",
        "process.stopped",
        "process.started",
        "process.restarted",
        "attention.raised",
        "process.stopped",
        "process.closed",
    ];
    assert_eq!(kinds, expected);
    let agents = json!({"kind": "agent", "process_id": lead.id.as_str()});
    let persons = json!({"kind": "person", "via": "cli"});
    for (event, kind) in about.iter().zip(expected) {
        // The first stop is the agent's; at the second one, a person closes the process.
        let is_agents = ["process.created", "input.sent", "process.renamed"].contains(&kind);
        if is_agents || *event == about[4] {
            assert_eq!(event["actor"], agents, "{event}");
        }
        if ["process.restarted", "attention.raised", "process.closed"].contains(&kind)
            || *event == about[8]
        {
            assert_eq!(event["actor"], persons, "{event}");
        }
    }
    let input = about[2];
    assert_eq!(input["data"]["length"], "secret text".len() as u64);
    assert!(input["offset"].is_u64(), "{input}");
    assert!(
        !serde_json::to_string(&events).unwrap().contains("secret text"),
        "input is not stored"
    );
    let called = of_type(&events, "tool.called");
    let outcomes = |tool: &str| {
        let of = called.iter().filter(|event| event["data"]["tool"] == tool);
        of.map(|event| event["data"]["outcome"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes("stop_process"), ["ok"]);
    assert_eq!(outcomes("get_events"), [""; 0], "tools that only read are not recorded");
}

#[test]
fn a_call_waits_for_an_event_of_its_type() {
    let (_place, server, mut tools) = tools();
    let id = tools.run(&["cat"]);
    let next = tools.ok("get_events", json!({}))["next"].as_u64().unwrap();
    let nothing = json!({"types": ["process.closed"], "timeout_seconds": 0});
    assert_eq!(tools.ok("wait_for_event", nothing)["timed_out"], true);
    let mut waiting = ToolClient::of(&server);
    let wait = json!({"types": ["process.exited", "process.*"], "process_id": id, "since": next,
        "timeout_seconds": 60});
    waiting.ask("wait_for_event", wait);
    tools.ok("timer_set", json!({"seconds": 9999, "owner_process_id": id, "body": "x"}));
    tools.ok("stop_process", json!({"process_id": id}));
    let found = waiting.receive().unwrap();
    assert_eq!(found["events"][0]["type"], "process.stopped", "{found}");
    assert_eq!(found["timed_out"], false);
    assert!(found["next"].as_u64().unwrap() > next);
}

#[test]
fn the_verb_prints_follows_checks_and_exports() {
    let place = Place::new();
    place.run(&["run", "--", "cat"]);
    place.run(&["stop", "p1"]);
    let shown = place.run(&["events", "p1", "--type", "process.*"]);
    for word in ["process.created  p1  by person", "process.started", "process.stopped"] {
        assert!(shown.contains(word), "{shown}");
    }
    let json: Value =
        serde_json::from_str(&place.run(&["events", "--json", "--since", "1h"])).unwrap();
    let listed = json.as_array().unwrap().len();
    assert!(listed >= 5, "{json}");
    assert!(place.run(&["events", "verify"]).contains("; nothing is damaged"));
    let exported = place.run(&["events", "export"]);
    let lines: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "system.started");
    check_numbers(&lines);
    place.run(&["kill"]);
    // Without a server, from disk.
    let after = place.run(&["events", "export"]);
    assert!(after.starts_with(&exported), "nothing of it changed");
    assert!(place.run(&["events", "verify"]).contains("; nothing is damaged"));
}

#[test]
fn the_verb_follows_until_nobody_reads() {
    let place = Place::new();
    place.run(&["run", "--", "cat"]);
    let mut verb = place.patterm(&["events", "-f", "--json", "--type", "process.*", "p1"]);
    let mut verb = verb.stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(verb.stdout.take().unwrap()).lines();
    let mut next = || -> String {
        let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
        event["type"].as_str().unwrap().to_owned()
    };
    assert_eq!([next(), next()], ["process.created", "process.started"]);
    place.run(&["stop", "p1"]);
    assert_eq!(next(), "process.stopped");
    drop(events);
    // It notices with the next event that nobody reads.
    place.run(&["start", "p1"]);
    place.run(&["stop", "p1"]);
    assert!(verb.wait().unwrap().success());
}
