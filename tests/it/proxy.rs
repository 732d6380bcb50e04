//! `patterm mcp-stdio`, which an agent's CLI runs and talks to, whatever happens to the server.

mod command_lines;
mod ending;
mod finding;
mod handshake;
mod refusal;
mod restart;
mod streams;

use std::path::Path;

use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place};

const NOTHING: [Value; 0] = [];

/// A client of a proxy in this place, with these variables and nothing else that selects a server.
fn client(place: &Place, variables: &[(&str, &Path)]) -> Peer {
    let mut command = place.patterm(&["mcp-stdio"]);
    Peer::through(command.envs(variables.iter().copied()), Framing::Newline)
}

/// The parameters of `initialize`, with something that only this client has.
fn initialize_params() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {"listChanged": true}},
        "clientInfo": {"name": "it", "version": "1.2"}, "x-own": [1.50, "ü"]})
}

/// Performs the handshake.
fn shake_hands(peer: &mut Peer) {
    let answer = peer.answer("hello", "initialize", initialize_params());
    assert_eq!(answer["result"]["serverInfo"]["name"], "patterm", "{answer}");
    peer.notify("notifications/initialized", json!({}));
}

/// The process id of the server that answers.
fn server_pid(who: &Value) -> u32 {
    u32::try_from(who["server"]["pid"].as_u64().unwrap()).unwrap()
}
