//! The HTTP endpoint of the real program: who is admitted, what they may do, and that it survives
//! crashes.

mod endpoint;
mod events;
mod guard;
mod killed;
mod native_tools;
mod raw;
mod tokens;

use std::net::SocketAddr;

use raw::Client;
use serde_json::{Value, json};

use crate::support::{Place, Spawned};

/// A server with its endpoint enabled, and a client with a token.
fn open(place: &Place) -> (Spawned, Client) {
    let output = place.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
    let server = Spawned { entry: serde_json::from_str(&output).unwrap() };
    let token = new_token(place, &["test"]);
    let client = Client::new(server.entry.http.unwrap(), &token);
    (server, client)
}

/// Creates a token; standard output contains nothing else.
fn new_token(place: &Place, arguments: &[&str]) -> String {
    let token = place.run(&[&["token", "new"], arguments].concat());
    let token = token.strip_suffix('\n').unwrap().to_owned();
    assert!(token.starts_with("patterm_") && token.len() == 72, "{token}");
    token
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Calls `whoami` with a token: the status of the response, and the caller's name in it.
pub(crate) fn whoami(address: SocketAddr, token: &str) -> (u16, Value) {
    let answer = Client::new(address, token).own(&call(1, "whoami", json!({})));
    (answer.status, answer.json()["result"]["structuredContent"]["caller"]["name"].take())
}
