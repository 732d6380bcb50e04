//! After `patterm kill`, a power cut or a reboot: exactly what ran is offered, and brought back in its
//! own entries when a person says so.

mod conversations;
mod declared;
mod kill;
mod power_cut;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use patterm_wire::bring_back::{Answer, Back, METHOD, Offer};
use patterm_wire::follow;
use serde_json::{Value, json};

use crate::processes::desk::Desk;
use crate::support::{Place, Spawned};

/// The server of a place as it is now, started where there is none, and a client of it.
fn serve(place: &Place) -> (Spawned, Desk) {
    let server = place.serve();
    let desk = Desk::at(&server.socket());
    (server, desk)
}

/// What the server of a place offers to bring back.
#[track_caller]
fn offers(place: &Place) -> Vec<Offer> {
    let mut stream = UnixStream::connect(place.serve().socket()).unwrap();
    let params = json!({"version": follow::VERSION});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": follow::METHOD, "params": params});
    writeln!(stream, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let mut answer: Value = serde_json::from_str(&line).unwrap();
    let seen: follow::Seen = serde_json::from_value(answer["result"].take()).unwrap();
    seen.offers
}

fn offered(place: &Place) -> Vec<String> {
    offers(place).into_iter().map(|offer| offer.id).collect()
}

/// Brings back what is offered, or these of it.
#[track_caller]
fn bring_back(desk: &mut Desk, params: Value) -> Vec<Back> {
    let answer: Answer = serde_json::from_value(desk.ok(METHOD, params)).unwrap();
    answer.processes
}

#[track_caller]
fn status_of(desk: &mut Desk, id: &str) -> String {
    desk.status(id)["status"].as_str().unwrap().to_owned()
}
