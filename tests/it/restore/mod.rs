//! After `patterm kill`, a power cut or a reboot: exactly the processes that ran are offered, and
//! restored in their own entries when a person confirms.

mod conversations;
mod declared;
mod kill;
mod power_cut;

use patterm_wire::Method;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use patterm_wire::follow;
use patterm_wire::restore::{Restore, RestoreOffer, RestoreResult, RestoredProcess};
use serde_json::{Value, json};

use crate::support::tool_client::ToolClient;
use crate::support::{Place, Spawned};

/// The current server of a place, started if there is none, and a client.
fn serve(place: &Place) -> (Spawned, ToolClient) {
    let server = place.serve();
    let tools = ToolClient::at(&server.socket());
    (server, tools)
}

/// What the server of a place offers to restore.
#[track_caller]
fn offers(place: &Place) -> Vec<RestoreOffer> {
    let mut stream = UnixStream::connect(place.serve().socket()).unwrap();
    let params = json!({"version": follow::VERSION});
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": follow::Follow::NAME, "params": params});
    writeln!(stream, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let mut answer: Value = serde_json::from_str(&line).unwrap();
    let seen: follow::ProjectSnapshot = serde_json::from_value(answer["result"].take()).unwrap();
    seen.offers
}

fn offered(place: &Place) -> Vec<String> {
    offers(place).into_iter().map(|offer| offer.id).collect()
}

/// Restores what is offered, or only these processes.
#[track_caller]
fn restore(tools: &mut ToolClient, params: Value) -> Vec<RestoredProcess> {
    let answer: RestoreResult = serde_json::from_value(tools.ok(Restore::NAME, params)).unwrap();
    answer.processes
}

#[track_caller]
fn status_of(tools: &mut ToolClient, id: &str) -> String {
    tools.status(id)["status"].as_str().unwrap().to_owned()
}
