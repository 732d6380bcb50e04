//! Shutdown: it leaves no trace of the server, every accepted call is answered, and the next server
//! can start.

use std::time::{Duration, Instant};

use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Traces;
use crate::support::{Peer, Place, Spawned, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

/// A timeout longer than every bounded wait of the server.
const CEILING: Duration = Duration::from_secs(20);

#[track_caller]
fn check_nothing_is_left_after(end: impl FnOnce(&Place, &Spawned)) {
    let place = Place::new();
    let server = place.serve();
    // An idle connection delays nothing.
    let mut idle = server.connect(SOCKET);
    assert_eq!(idle.answer(1, "ping", json!({}))["result"], json!({}));
    let process = server.process();
    end(&place, &server);
    process.wait();
    assert_eq!(idle.try_receive(), None);
    assert!(!server.socket().exists());
    Traces::of(&place).assert_none();
    assert_ne!(place.serve().pid(), server.pid());
}

#[test]
fn kill_leaves_nothing() {
    check_nothing_is_left_after(|place, _| drop(place.run(&["kill"])));
}

#[test]
fn sigterm_leaves_nothing() {
    check_nothing_is_left_after(|_, server| server.end_with(Signal::TERM));
}

#[test]
fn sigint_leaves_nothing() {
    check_nothing_is_left_after(|_, server| server.end_with(Signal::INT));
}

#[test]
fn ending_twice_is_harmless() {
    check_nothing_is_left_after(|place, server| {
        let process = server.process();
        process.signal(Signal::TERM);
        // It may be gone by now, or about to be: both are fine.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(server.pid().cast_signed()).unwrap(),
            Signal::TERM,
        );
        process.wait();
        assert_eq!(place.run(&["kill"]), "no server is running for this project\n");
    });
}

#[test]
fn calls_in_flight_are_answered_before_the_server_ends() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Socket(framing));
        peer.ask(1, "test_wait", json!({}));
        // Served in order, so that the call before it has begun.
        assert_eq!(peer.answer(2, "ping", json!({}))["result"], json!({}));
        server.begin_stop();
        assert_eq!(peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}));
        assert_eq!(peer.try_receive(), None);
        server.stop();
        assert!(!server.socket().exists());
        server = place.serve_in_process();
    }
}

#[test]
fn a_call_that_does_not_end_is_answered_with_an_error_when_the_server_does() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    peer.ask(1, "test_stuck", json!({}));
    peer.answer(2, "ping", json!({}));
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < CEILING, "{:?}", begun.elapsed());
    check_given_up(&peer.receive());
    assert_eq!(peer.try_receive(), None);
}

/// Its client has already closed its side and only waits for the response.
#[test]
fn a_client_that_ended_before_the_server_is_answered_too() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    peer.ask(1, "test_stuck", json!({}));
    peer.ask(2, "test_wait", json!({}));
    peer.end();
    assert_eq!(peer.receive()["id"], 2, "the server has seen the client's end");
    server.stop();
    check_given_up(&peer.receive());
    assert_eq!(peer.try_receive(), None);
}

fn check_given_up(answer: &Value) {
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32008)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("may or may not have been carried out"), "{message}");
}

/// A start that finds a server which is still answering its last calls must neither use that server
/// nor fail.
#[test]
fn a_start_during_another_servers_end_gives_a_server_that_serves() {
    let place = Place::new();
    let mut old = place.serve_in_process();
    let mut peer = old.connect(SOCKET);
    peer.ask(1, "test_stuck", json!({}));
    peer.answer(2, "ping", json!({}));
    // This one is told while the other's call continues.
    let mut idle = old.connect(SOCKET);
    idle.answer(1, "ping", json!({}));
    old.begin_stop();
    assert_eq!(idle.try_receive(), None);
    let new: ServerEntry = serde_json::from_str(&place.run(&["serve", "--json"])).unwrap();
    assert_ne!(new.pid, std::process::id());
    let mut next = Peer::connect(SOCKET, &new.socket);
    assert_eq!(next.answer(1, "ping", json!({}))["result"], json!({}));
    check_given_up(&peer.receive());
    old.stop();
    assert_eq!(Traces::of(&place).entry(), new, "the old server removed nothing of the new one's");
}

#[test]
fn a_client_that_ends_its_side_is_answered_first() {
    let place = Place::new();
    let server = place.serve_in_process();
    for framing in [Framing::Newline, Framing::Headers] {
        let mut peer = server.connect(Transport::Socket(framing));
        peer.ask(1, "test_wait", json!({}));
        peer.ask(2, "tools/call", json!({"name": "test_wait", "arguments": {}}));
        peer.ask(3, "test_large", json!({"bytes": 3_000_000}));
        peer.ask(4, "ping", json!({}));
        let mut answers = peer.finish();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        assert_eq!(answers[0]["result"], json!({"ok": true}));
        assert_eq!(answers[1]["result"]["structuredContent"], json!({"ok": true}));
        assert_eq!(answers[2]["result"]["text"].as_str().unwrap().len(), 3_000_000);
        assert_eq!(answers[3]["result"], json!({}));
    }
}

#[test]
fn a_call_that_outlives_its_client_for_too_long_is_answered_with_an_error() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    peer.ask(1, "test_stuck", json!({}));
    let begun = Instant::now();
    let answers = peer.finish();
    assert!(begun.elapsed() < CEILING, "{:?}", begun.elapsed());
    assert_eq!(answers.len(), 1);
    check_given_up(&answers[0]);
}
