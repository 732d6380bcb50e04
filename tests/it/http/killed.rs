//! HTTP clients that vanish in the middle of a request: no other client notices.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::raw::Client;
use super::{call, open, request};
use crate::processes::survival::{COUNTER, check_counted, moment};
use crate::support::tool_client::{ToolClient, long, until};
use crate::support::{Baseline, Place, ProcessStats, Rng};
use crate::view::View;

/// How many kinds of requests [`begin`] begins.
const KINDS: usize = 5;

/// Begins a slow request, of a different kind each time.
fn begin(client: &Client, session: &str, id: &str, turn: usize) -> TcpStream {
    let own = ("Mcp-Session-Id", session);
    let ask = |body: &Value| client.begin("POST", "/mcp", &[own], &body.to_string());
    match turn % KINDS {
        0 => ask(&call(1, "wait_for_pattern", json!({"process_id": id, "pattern": "never"}))),
        1 => {
            ask(&call(2, "get_process_raw_output", json!({"process_id": id, "max_bytes": 1 << 20})))
        }
        2 => client.begin("GET", "/mcp", &[own], ""),
        3 => client.begin("POST", "/mcp", &[own, ("Content-Length", "999999")], "{\"jsonrpc\""),
        _ => {
            let mut stream = TcpStream::connect(client.address).unwrap();
            stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc").unwrap();
            stream
        }
    }
}

/// The screen in a new view, which must be the same as in the server.
fn seen(socket: &Path, tools: &mut ToolClient, id: &str) -> Vec<String> {
    let mut view = View::attach_at(socket, id, 24, 80);
    let rows = tools.rows(id);
    view.until(|view| rows.iter().all(|row| view.shows(row)));
    rows
}

#[test]
fn clients_are_killed_and_nobody_else_notices() {
    let place = Place::new();
    let mut rng = Rng::new(23);
    let (server, client) = open(&place);
    let process = server.process();
    let mut tools = ToolClient::at(&server.socket());
    let still = tools.sh("seq 1 12; exec cat");
    tools.wait(&still, "^12$");
    let shown = seen(&server.socket(), &mut tools, &still);
    let id = tools.sh(COUNTER);
    let begun = client.own(&request(0, "initialize", json!({"protocolVersion": "2025-11-25"})));
    let session = begun.header("mcp-session-id").unwrap();
    // The first request opens files that stay open (audit.jsonl), so some of each kind come first.
    let at_rest = Baseline::after(&ProcessStats::of(server.pid()), || {
        for turn in 0..KINDS {
            drop(begin(&client, &session, &id, turn));
        }
        assert_eq!(client.own(&call(1, "whoami", json!({}))).status, 200);
    });
    let times = if long() { 500 } else { 170 };
    for turn in 0..times {
        // Disconnects abruptly with unread data, like a killed client.
        let stream = begin(&client, &session, &id, turn);
        moment(&mut rng);
        drop(stream);
    }
    assert!(!process.is_gone(), "the same server");
    assert_eq!(client.own(&call(1, "whoami", json!({}))).status, 200);
    until("nothing of them is left", || at_rest.more_descriptors().is_none().then_some(()));
    std::fs::write(place.path("project/stop"), "").unwrap();
    tools.wait(&id, r"^end \d+$");
    check_counted(&tools.raw(&id));
    assert_eq!(seen(&server.socket(), &mut tools, &still), shown);
}
