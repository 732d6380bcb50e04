//! The real server is killed, shut down and restarted under a client that continues.

use std::path::Path;

use patterm_agents::identity::write_file;
use patterm_wire::Framing;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{NOTHING, client, initialize_params, server_pid, shake_hands};
use crate::support::{Peer, Place, Running, Transport};

/// `kill -9`, and waits until the process is gone.
fn kill(pid: u32) {
    let process = Running::of(pid);
    process.signal(Signal::KILL);
    process.wait();
}

#[test]
fn after_twenty_kills_it_serves_the_same_client_as_the_same_caller() {
    let place = Place::new();
    let mut issuing = place.serve_in_process();
    let (lead, token) = issuing.agent("lead", None);
    issuing.stop();
    let file = place.path("token");
    write_file(&token, &file).unwrap();
    let mut peer = client(&place, &[("PATTERM_IDENTITY_FILE", &file)]);
    shake_hands(&mut peer);
    let mut last = None;
    for n in 0..20 {
        let who = peer.call(n, "whoami", json!({}));
        assert_eq!(who["caller"]["process_id"], json!(lead.id));
        let pid = server_pid(&who);
        assert_ne!(last.replace(pid), Some(pid));
        kill(pid);
    }
    assert_eq!(peer.answer("last", "ping", json!({}))["result"], json!({}));
    assert_eq!(peer.finish(), NOTHING);
}

/// The same without a pause: requests are in flight when the server dies.
#[test]
fn every_request_is_answered_once_when_the_server_is_killed_under_load() {
    let place = Place::new();
    let mut peer = client(&place, &[]);
    shake_hands(&mut peer);
    for round in 0..10 {
        let pid = server_pid(&peer.call("who", "whoami", json!({})));
        let ids = (0..100).map(|n| round * 100 + n);
        for id in ids.clone() {
            let method = ["ping", "whoami", "tools/list"][id as usize % 3];
            peer.ask(id, method, json!({}));
        }
        kill(pid);
        let mut answered: Vec<u64> = ids
            .clone()
            .map(|_| {
                let answer = peer.receive();
                let id = answer["id"].as_u64().unwrap();
                // Reads are repeated; a call may have been lost.
                let lost = answer["error"]["code"] == -32008 && id % 3 == 1;
                assert!(answer.get("result").is_some() || lost, "{answer}");
                id
            })
            .collect();
        answered.sort_unstable();
        assert_eq!(answered, ids.collect::<Vec<_>>());
    }
    assert_eq!(peer.finish(), NOTHING);
}

#[test]
fn a_handshake_is_answered_once_when_the_server_is_killed_during_it() {
    let place = Place::new();
    for _ in 0..10 {
        let server = place.serve();
        let mut peer = client(&place, &[]);
        peer.ask("hello", "initialize", initialize_params());
        server.kill();
        assert_eq!(peer.receive()["id"], "hello");
        peer.notify("notifications/initialized", json!({}));
        assert_ne!(server_pid(&peer.call(1, "whoami", json!({}))), server.pid());
        assert_eq!(peer.finish(), NOTHING);
        place.run(&["kill"]);
    }
}

#[test]
fn a_server_that_a_person_ended_is_started_again_when_needed() {
    let place = Place::new();
    let mut peer = client(&place, &[]);
    shake_hands(&mut peer);
    let first = server_pid(&peer.call(1, "whoami", json!({})));
    place.run(&["kill"]);
    assert_ne!(server_pid(&peer.call(2, "whoami", json!({}))), first);
    assert_eq!(peer.finish(), NOTHING);
}

#[test]
fn all_clients_of_a_killed_server_share_one_new_server() {
    let place = Place::new();
    let mut peers: Vec<Peer> = (0..6).map(|_| client(&place, &[])).collect();
    peers.iter_mut().for_each(shake_hands);
    for round in 0..3 {
        let mut pids =
            peers.iter_mut().map(|peer| server_pid(&peer.call(round, "whoami", json!({}))));
        let first = pids.next().unwrap();
        assert!(pids.all(|pid| pid == first));
        kill(first);
    }
    for peer in peers {
        assert_eq!(peer.finish(), NOTHING);
    }
}

/// A server that shuts down cleanly answers its calls; the proxy adds nothing.
#[test]
fn a_call_that_the_ending_server_still_answers_is_answered_once() {
    let place = Place::new();
    let mut server = place.serve_in_process();
    let mut peer = Peer::connect(Transport::Proxy(Framing::Newline), server.socket());
    peer.ask(1, "test_wait", json!({}));
    peer.answer(2, "ping", json!({}));
    server.stop();
    assert_eq!(peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}));
    assert_eq!(peer.exit().0, NOTHING);
}

/// The proxy takes a while to start a server; requests meanwhile are not lost.
#[test]
fn requests_during_the_start_of_a_server_are_answered_in_order() {
    let place = Place::new();
    let mut peer = client(&place, &[]);
    for id in 0..50 {
        peer.ask(id, "ping", json!({}));
    }
    for id in 0..50 {
        assert_eq!(peer.receive()["id"], id);
    }
    assert_eq!(peer.finish(), NOTHING);
}

#[test]
fn a_server_that_cannot_start_is_reported_with_the_reason() {
    let place = Place::new();
    std::os::unix::fs::symlink("/", place.path("run/patterm")).unwrap();
    let mut peer = client(&place, &[]);
    for id in 1..=2 {
        let answer = peer.answer(id, "ping", json!({}));
        assert_eq!(answer["error"]["code"], -32008);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("is not a folder that belongs to you alone"), "{message}");
    }
    // It starts as soon as it can.
    std::fs::remove_file(place.path("run/patterm")).unwrap();
    assert_eq!(peer.answer(3, "ping", json!({}))["result"], Value::from(serde_json::Map::new()));
    assert_eq!(peer.finish(), NOTHING);
    assert!(Path::new(&place.path("run/patterm")).is_dir());
}
