//! The log of events of the real server: what is recorded, who did it, and that nothing is lost when the server dies.

mod damage;
mod death;
mod digest;
mod reading;

use serde_json::{Value, json};

use crate::support::tool_client::ToolClient;

/// All events, and how many are missing.
fn all(tools: &mut ToolClient) -> (Vec<Value>, u64) {
    let (mut events, mut since, mut dropped) = (Vec::new(), 1, 0);
    loop {
        let page = tools.ok("get_events", json!({"since": since, "limit": 1000}));
        let found = page["events"].as_array().unwrap();
        dropped += page["dropped"].as_u64().unwrap();
        if found.is_empty() {
            return (events, dropped);
        }
        events.extend(found.iter().cloned());
        since = page["next"].as_u64().unwrap();
    }
}

/// The events of a type, about anything or about one process.
fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Numbers without gaps or repeats.
#[track_caller]
fn check_numbers(events: &[Value]) {
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}
