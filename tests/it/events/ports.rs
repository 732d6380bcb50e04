//! Ports on which processes listen, as events.

use serde_json::{Value, json};

use super::{all, of_type};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};

/// Listens on a port, closes it on a line, and listens on another one on the next line.
const LISTENER: &str = "
import socket, sys
def listen():
    server = socket.create_server(('127.0.0.1', 0))
    print('port', server.getsockname()[1], flush=True)
    return server
first = listen()
sys.stdin.readline()
first.close()
print('closed', flush=True)
sys.stdin.readline()
second = listen()
sys.stdin.readline()
";

/// The port that a process prints, if it is another one than before.
fn printed(tools: &mut ToolClient, id: &str, before: Option<u64>) -> u64 {
    until("a port", || {
        let rows = tools.rows(id);
        let row = rows.iter().rev().find_map(|row| row.strip_prefix("port "))?;
        // Python writes the words one by one.
        row.parse().ok().filter(|port| Some(*port) != before)
    })
}

/// Waits for an event about a port.
fn until_event(tools: &mut ToolClient, kind: &str, port: u64) -> Value {
    until(&format!("{kind} {port}"), || {
        let (events, _) = all(tools);
        of_type(&events, kind).into_iter().find(|event| event["data"]["port"] == port).cloned()
    })
}

#[test]
fn ports_are_recorded_when_they_are_opened_and_closed() {
    let place = Place::new();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    let id = tools.run(&["python3", "-u", "-c", LISTENER]);
    let first = printed(&mut tools, &id, None);
    let opened = until_event(&mut tools, "port.opened", first);
    assert_eq!((&opened["process_id"], &opened["run"]), (&json!(id), &json!(1)));
    assert_eq!(opened["actor"]["kind"], "system");
    assert!(opened["offset"].as_u64().is_some(), "{opened}");
    tools.line(&id, "");
    until_event(&mut tools, "port.closed", first);
    tools.line(&id, "");
    let second = printed(&mut tools, &id, Some(first));
    until_event(&mut tools, "port.opened", second);
    // The next server knows what was open; the program ends while there is none to see it.
    server.kill();
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    tools.ok("stop_process", json!({"process_id": id}));
    until_event(&mut tools, "port.closed", second);
    let (events, _) = all(&mut tools);
    let ports: Vec<_> = ["port.opened", "port.closed"]
        .map(|kind| of_type(&events, kind).iter().map(|e| e["data"]["port"].clone()).collect())
        .into_iter()
        .collect::<Vec<Vec<Value>>>();
    assert_eq!(ports, vec![vec![json!(first), json!(second)]; 2], "each once");
}
