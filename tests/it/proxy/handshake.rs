//! What a new server receives when the old one is gone, and what the client receives meanwhile:
//! seen from a fake server.

use std::path::Path;

use serde_json::{Value, json};

use super::{NOTHING, client, initialize_params};
use crate::support::{Conversation, FakeServer, Peer, Place};

const TOKEN: &str = "abababababababababababababababababababababababababababababababab";

struct Harness {
    /// First, so that the proxy is dropped before its server.
    peer: Peer,
    server: FakeServer,
    _place: Place,
}

/// A client with an identity, before its first message.
fn harness() -> Harness {
    let place = Place::new();
    let server = FakeServer::at(&place.path("fake.sock"));
    let variables = [("PATTERM_SOCKET", server.socket()), ("PATTERM_IDENTITY", Path::new(TOKEN))];
    let peer = client(&place, &variables);
    Harness { peer, server, _place: place }
}

impl Harness {
    /// The next connection, greeted.
    fn accept(&self) -> Conversation {
        let mut conversation = self.server.accept();
        assert_eq!(conversation.receive(), json!({"patterm_identity": TOKEN}), "first of all");
        conversation
    }

    /// A connection after the client's handshake.
    fn shake_hands(&mut self) -> Conversation {
        self.peer.ask("hello", "initialize", initialize_params());
        let mut conversation = self.accept();
        let initialize = conversation.receive();
        assert_eq!(initialize["id"], "hello");
        conversation.answer(&initialize, json!({"first": true}));
        assert_eq!(self.peer.receive()["result"], json!({"first": true}));
        self.peer.notify("notifications/initialized", json!({}));
        assert_eq!(conversation.receive()["method"], "notifications/initialized");
        conversation
    }

    /// The next connection, after the proxy repeated the handshake.
    fn accept_again(&self) -> Conversation {
        let mut conversation = self.accept();
        let initialize = conversation.receive();
        assert_eq!(initialize["method"], "initialize");
        assert_eq!(initialize["params"], initialize_params());
        assert_ne!(initialize["id"], "hello", "an id of its own");
        assert_eq!(conversation.receive()["method"], "notifications/initialized");
        conversation.answer(&initialize, json!({"again": true}));
        conversation
    }

    /// The client ends; it must have received everything already.
    fn finish(mut self, mut conversation: Conversation) {
        self.peer.end();
        assert_eq!(conversation.try_receive(), None);
        drop(conversation);
        assert_eq!(self.peer.finish(), NOTHING);
    }
}

fn call() -> Value {
    json!({"name": "spawn_agent", "arguments": {}})
}

#[track_caller]
fn check_lost(answer: &Value, id: impl Into<Value>) {
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id.into(), &json!(-32008)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the patterm server restarted while this call was in flight"));
}

#[test]
fn while_idle_the_handshake_is_repeated_and_the_client_notices_nothing() {
    let mut harness = harness();
    drop(harness.shake_hands());
    let mut conversation = harness.accept_again();
    harness.peer.ask(1, "tools/call", call());
    let request = conversation.receive();
    assert_eq!(request["id"], 1);
    conversation.answer(&request, json!({"ok": 1}));
    assert_eq!(harness.peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": 1}}));
    harness.finish(conversation);
}

#[test]
fn the_clients_own_messages_are_repeated_byte_for_byte() {
    let mut harness = harness();
    let params =
        r#"{"protocolVersion" : "2025-11-25","x":[1.50, 10000000000000000000000,"\u00fc"]}"#;
    let initialize =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    harness.peer.send_body(initialize.as_bytes());
    let mut conversation = harness.accept();
    assert_eq!(conversation.receive_line(), format!("{initialize}\n").as_bytes());
    conversation.answer(&json!({"id": 1}), json!({}));
    harness.peer.receive();
    drop(conversation);
    let mut conversation = harness.accept();
    let again = String::from_utf8(conversation.receive_line()).unwrap();
    assert!(again.contains(&format!(r#""params":{params}"#)), "{again}");
    harness.finish(conversation);
}

#[test]
fn a_call_in_flight_fails_and_a_read_is_repeated() {
    let mut harness = harness();
    let mut conversation = harness.shake_hands();
    harness.peer.ask(1, "tools/call", call());
    harness.peer.ask(2, "tools/list", json!({"cursor": "x"}));
    harness.peer.ask("three", "whoami", json!({}));
    harness.peer.ask(4, "ping", json!({}));
    let asked: Vec<Value> = (0..4).map(|_| conversation.receive()).collect();
    drop(conversation);

    let mut lost = [harness.peer.receive(), harness.peer.receive()];
    lost.sort_by_key(|answer| answer["id"].is_string());
    check_lost(&lost[0], 1);
    check_lost(&lost[1], "three");
    let mut conversation = harness.accept_again();
    for at in [1, 3] {
        let again = conversation.receive();
        assert_eq!(again, asked[at]);
        conversation.answer(&again, json!({"at": at}));
        assert_eq!(harness.peer.receive()["result"], json!({"at": at}));
    }
    // Their ids are free again.
    harness.peer.ask(1, "tools/call", call());
    let request = conversation.receive();
    conversation.answer(&request, json!({}));
    assert_eq!(harness.peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    harness.finish(conversation);
}

#[test]
fn each_of_hundreds_in_flight_is_answered_once() {
    let mut harness = harness();
    let mut conversation = harness.shake_hands();
    for id in 0..200 {
        let method = if id % 2 == 0 { "tools/call" } else { "ping" };
        harness.peer.ask(id, method, call());
    }
    for id in 0..200 {
        assert_eq!(conversation.receive()["id"], id);
    }
    drop(conversation);
    let mut lost: Vec<_> = (0..100).map(|_| harness.peer.receive()).collect();
    lost.sort_by_key(|answer| answer["id"].as_u64());
    for (n, answer) in lost.iter().enumerate() {
        check_lost(answer, 2 * n);
    }
    let mut conversation = harness.accept_again();
    for n in 0..100 {
        let ping = conversation.receive();
        assert_eq!(ping["id"], 2 * n + 1, "in the order they were asked");
        conversation.answer(&ping, json!({}));
        assert_eq!(harness.peer.receive()["id"], 2 * n + 1);
    }
    harness.finish(conversation);
}

#[test]
fn a_batch_in_flight_fails_element_by_element() {
    let mut harness = harness();
    let mut conversation = harness.shake_hands();
    let element = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = json!([element(1), element(2)]);
    harness.peer.send_body(batch.to_string().as_bytes());
    assert_eq!(conversation.receive(), batch);
    // The proxy's own request, to learn whether the batch is refused.
    assert_eq!(conversation.receive()["method"], "ping");
    drop(conversation);
    let mut lost = [harness.peer.receive(), harness.peer.receive()];
    lost.sort_by_key(|answer| answer["id"].as_u64());
    check_lost(&lost[0], 1);
    check_lost(&lost[1], 2);
    let conversation = harness.accept_again();
    harness.finish(conversation);
}

#[test]
fn an_unanswered_handshake_is_repeated_unchanged() {
    let mut harness = harness();
    harness.peer.ask("hello", "initialize", initialize_params());
    for _ in 0..2 {
        let mut conversation = harness.accept();
        assert_eq!(conversation.receive()["id"], "hello");
    }
    let mut conversation = harness.accept();
    let initialize = conversation.receive();
    assert_eq!((&initialize["id"], &initialize["params"]), (&json!("hello"), &initialize_params()));
    conversation.answer(&initialize, json!({}));
    assert_eq!(harness.peer.receive()["id"], "hello");
    harness.peer.notify("notifications/initialized", json!({}));
    assert_eq!(conversation.receive()["method"], "notifications/initialized", "and no second one");
    harness.finish(conversation);
}

#[test]
fn a_whole_handshake_in_one_write_is_repeated_in_its_order() {
    let mut harness = harness();
    harness.peer.ask("hello", "initialize", initialize_params());
    harness.peer.notify("notifications/initialized", json!({}));
    let reads = ["tools/list", "ping", "resources/list", "prompts/list"];
    for (id, method) in reads.iter().enumerate() {
        harness.peer.ask(id, method, json!({}));
    }
    let mut first = harness.accept();
    let hear_all = |conversation: &mut Conversation| -> Vec<Value> {
        (0..2 + reads.len()).map(|_| conversation.receive()["method"].take()).collect()
    };
    let heard = hear_all(&mut first);
    assert_eq!(heard[..2], ["initialize", "notifications/initialized"]);
    drop(first);
    let mut second = harness.accept();
    assert_eq!(hear_all(&mut second), heard);
    second.answer(&json!({"id": "hello"}), json!({}));
    for id in 0..reads.len() {
        second.answer(&json!({"id": id}), json!({}));
    }
    for id in [json!("hello"), json!(0), json!(1), json!(2), json!(3)] {
        assert_eq!(harness.peer.receive()["id"], id);
    }
    harness.finish(second);
}

#[test]
fn between_the_two_steps_of_the_handshake_only_the_first_is_repeated() {
    let mut harness = harness();
    harness.peer.ask("hello", "initialize", initialize_params());
    let mut conversation = harness.accept();
    let initialize = conversation.receive();
    conversation.answer(&initialize, json!({}));
    assert_eq!(harness.peer.receive()["id"], "hello");
    drop(conversation);
    let mut conversation = harness.accept();
    assert_eq!(conversation.receive()["params"], initialize_params());
    harness.peer.notify("notifications/initialized", json!({}));
    assert_eq!(conversation.receive()["method"], "notifications/initialized");
    harness.peer.ask(1, "ping", json!({}));
    let ping = conversation.receive();
    assert_eq!(ping["id"], 1, "initialized was sent once");
    conversation.answer(&ping, json!({}));
    assert_eq!(harness.peer.receive()["id"], 1);
    harness.finish(conversation);
}

#[test]
fn half_an_answer_never_reaches_the_client() {
    use std::io::Write;
    let mut harness = harness();
    let mut conversation = harness.shake_hands();
    harness.peer.ask(1, "tools/list", json!({}));
    harness.peer.ask(2, "tools/call", call());
    let (list, _call) = (conversation.receive(), conversation.receive());
    conversation.stream().write_all(br#"{"jsonrpc":"2.0","id":2,"res"#).unwrap();
    drop(conversation);
    check_lost(&harness.peer.receive(), 2);
    let mut conversation = harness.accept_again();
    assert_eq!(conversation.receive(), list);
    conversation.answer(&list, json!({}));
    assert_eq!(harness.peer.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    harness.finish(conversation);
}

#[test]
fn an_answer_that_arrived_with_the_end_counts() {
    let mut harness = harness();
    let mut conversation = harness.shake_hands();
    harness.peer.ask(1, "tools/call", call());
    let request = conversation.receive();
    conversation.answer(&request, json!({"done": true}));
    drop(conversation);
    assert_eq!(harness.peer.receive()["result"], json!({"done": true}));
    let conversation = harness.accept_again();
    harness.finish(conversation);
}

#[test]
fn unsolicited_messages_of_the_new_server_reach_the_client() {
    let mut harness = harness();
    drop(harness.shake_hands());
    let mut conversation = harness.accept_again();
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    conversation.send(&notice);
    assert_eq!(harness.peer.receive(), notice);
    harness.finish(conversation);
}

#[test]
fn a_server_that_ends_every_connection_is_not_retried_forever() {
    let mut harness = harness();
    harness.peer.ask(1, "tools/list", json!({}));
    for _ in 0..3 {
        assert_eq!(harness.accept().receive()["id"], 1);
    }
    let answer = harness.peer.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32008)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("ends every connection at once"), "{message}");
    assert!(harness.server.no_connection());
    // The next request may succeed.
    harness.peer.ask(2, "tools/list", json!({}));
    let mut conversation = harness.accept();
    let request = conversation.receive();
    conversation.answer(&request, json!({}));
    assert_eq!(harness.peer.receive()["id"], 2);
    harness.finish(conversation);
}
