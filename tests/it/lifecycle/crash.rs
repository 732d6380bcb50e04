//! After `kill -9`: leftovers of a dead server are replaced, and files of a living one are not
//! touched.

use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use serde_json::json;

use super::Traces;
use crate::support::{Peer, Place, Running, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

#[test]
fn leftovers_of_a_dead_server_are_replaced_at_the_next_start() {
    let place = Place::new();
    let traces = Traces::of(&place);
    let dead = place.serve();
    dead.kill();
    assert!(dead.socket().exists() && traces.entry() == dead.entry, "nobody cleaned up");
    traces.assert_unlocked();
    let next = place.serve();
    assert_ne!(next.pid(), dead.pid());
    assert!(!dead.socket().exists());
    assert_eq!(traces.entry(), next.entry);
    traces.assert_locked();
    let mut peer = next.connect(SOCKET);
    assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
}

#[test]
fn a_dead_server_is_neither_listed_nor_killed() {
    let place = Place::of_another_user();
    let dead = place.serve();
    dead.kill();
    assert_eq!(place.run(&["kill"]), "no server is running for this project\n");
    assert_eq!(place.run(&["ls", "--json"]), "[]\n");
}

#[test]
fn a_dead_servers_socket_in_tmp_is_removed_too() {
    let place = Place::of_another_user();
    let serve = || {
        let mut command = place.patterm(&["serve", "--json"]);
        let output = command.env_remove("XDG_RUNTIME_DIR").output().unwrap();
        serde_json::from_slice::<ServerEntry>(&output.stdout).unwrap()
    };
    let dead = serve();
    let process = Running::of(dead.pid);
    process.signal(Signal::KILL);
    process.wait();
    assert!(dead.socket.exists(), "nobody cleaned up");
    let next = serve();
    assert_ne!(next.pid, dead.pid);
    assert!(!dead.socket.exists() && next.socket.exists());
}

#[test]
fn a_living_servers_socket_is_never_removed() {
    let place = Place::new();
    let living = place.serve();
    let mut peer = living.connect(SOCKET);
    let serve_second = || {
        let mut command = place.patterm(&["serve", "--json"]);
        let output = command.current_dir(place.path("home")).output().unwrap();
        serde_json::from_slice::<ServerEntry>(&output.stdout).unwrap()
    };
    // A start, a crash and a start again in the same runtime folder.
    let second = serve_second();
    let process = Running::of(second.pid);
    process.signal(Signal::KILL);
    process.wait();
    let third = Running::of(serve_second().pid);
    assert!(!second.socket.exists() && living.socket().exists());
    assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
    let mut newcomer = Peer::connect(SOCKET, &living.socket());
    assert_eq!(newcomer.answer(1, "ping", json!({}))["result"], json!({}));
    assert_eq!(place.serve().entry, living.entry);
    third.signal(Signal::TERM);
    third.wait();
}

/// The lock decides whether a server is alive, not the entry, which may contain anything.
#[test]
fn a_damaged_or_lost_entry_of_a_dead_server_does_no_harm() {
    let place = Place::new();
    let traces = Traces::of(&place);
    for damage in ["", "{", "{\"pid\":1}", "null"] {
        place.serve().kill();
        for entry in &traces.entries {
            std::fs::write(entry, damage).unwrap();
        }
        let next = place.serve();
        assert_eq!(traces.entry(), next.entry, "after {damage:?}");
    }
}

/// Somebody cleaned up `/tmp`. The server cannot be reached, but it still holds the project's lock.
#[test]
fn a_living_server_whose_socket_was_removed_is_named() {
    let place = Place::new();
    let server = place.serve();
    std::fs::remove_file(server.socket()).unwrap();
    let output = place.patterm(&["serve"]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("end it with `kill {}`", server.pid())), "{error}");
    server.end_with(Signal::TERM);
    assert_ne!(place.serve().pid(), server.pid());
}
