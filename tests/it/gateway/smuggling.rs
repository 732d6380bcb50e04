//! Messages that patterm and the server behind it could interpret differently.

use std::collections::BTreeSet;

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::client::{Client, Exchange, call, request};
use super::harness::{Harness, ServerConfig};
use crate::support::{Spawned, Transport};

/// A call of `echo` on several lines, the second of which is a call of `whoami` by itself.
const SMUGGLED: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"NAME\",\"x\":\n\
    {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"whoami\"}}\n}}";

/// A harness, and a token for `echo` only.
fn gate_with_a_narrow_token(config: ServerConfig) -> (Harness, Client) {
    let harness = Harness::of(config);
    let arguments = ["token", "new", "narrow", "--servers", "everything", "--tools", "echo"];
    let token = harness.place.run(&arguments).trim().to_owned();
    let client = Client::greeted_with(&harness, &token, json!({}));
    (harness, client)
}

/// The tools that the server was asked to call, once the next message was answered.
#[track_caller]
fn called(harness: &Harness) -> Vec<String> {
    let calls = harness.log.lines();
    let calls = calls.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls = calls.filter(|message| message["method"] == "tools/call");
    calls.map(|message| message["params"]["name"].as_str().unwrap_or("?").to_owned()).collect()
}

#[track_caller]
fn post(client: &Client, body: &str) -> Value {
    Exchange::of(client.send_text("POST", Client::PATH, &[], body)).rest().json()
}

#[test]
fn a_body_with_line_feeds_is_one_message_to_a_shared_server() {
    let (harness, narrow) = gate_with_a_narrow_token(ServerConfig::default());
    let answer = post(&narrow, &SMUGGLED.replace("NAME", "echo"));
    assert!(answer["result"].is_object(), "an honest message of several lines: {answer}");
    // With carriage returns, and other characters that some runtimes treat as line ends.
    for end in ["\r", "\r\n"] {
        let answer = post(&narrow, &SMUGGLED.replace("NAME", "echo").replace('\n', end));
        assert!(answer["result"].is_object(), "{answer}");
    }
    let mut hidden = call(3, "echo", json!({"text": "x\u{2028}y\u{2029}z\u{85}"}));
    assert!(narrow.post(&hidden).json()["result"].is_object());
    assert_eq!(called(&harness), ["echo"; 4], "{:#?}", harness.log.lines());
    let noise = harness.log.lines().iter().filter(|line| line.contains("not_json")).count();
    assert_eq!(noise, 0, "the server read whole messages only");
    assert!(!harness.log.lines().concat().contains(['\u{2028}', '\u{2029}', '\u{85}']));
    // Pretty-printed, as some clients do.
    hidden["id"] = json!(4);
    let pretty = serde_json::to_string_pretty(&hidden).unwrap();
    assert_eq!(post(&narrow, &pretty)["id"], 4);
}

#[test]
fn a_framed_message_with_line_feeds_is_one_message_to_a_shared_server() {
    let harness = Harness::of(ServerConfig::with("without = ['whoami']"));
    let server: Spawned = harness.place.serve();
    for transport in [Transport::Socket(Framing::Headers), Transport::Proxy(Framing::Headers)] {
        let mut peer = server.connect(transport);
        let refused = peer.answer(0, "tools/call", json!({"name": "everything__whoami"}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        peer.send_body(SMUGGLED.replace("NAME", "everything__echo").as_bytes());
        let answer = peer.receive();
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(called(&harness), ["echo", "echo"], "{:#?}", harness.log.lines());
}

#[test]
fn an_ambiguous_message_is_refused() {
    let (harness, narrow) = gate_with_a_narrow_token(ServerConfig::default());
    let whole = Client::greeted(&harness);
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","n\u0061me":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"Params":{"name":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"paramſ":{"name":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call","params":{"name":"whoami"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"whoami"}}"#,
    ] {
        for client in [&narrow, &whole] {
            let answer = post(client, body);
            assert!(
                [-32600, -32602].map(Value::from).contains(&answer["error"]["code"]),
                "{body}: {answer}"
            );
        }
    }
    // Over an agent's connection, where filters apply, too.
    let server = harness.place.serve();
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"everything__echo","name":"whoami"}}"#;
    peer.send_body(body.as_bytes());
    let answer = peer.receive();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(called(&harness), [""; 0]);
    assert!(narrow.post(&call(2, "echo", json!({}))).json()["result"].is_object());
}

#[test]
fn ids_of_requests_to_a_shared_server_cannot_be_guessed() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    for id in 0..20 {
        assert_eq!(client.post(&call(id, "echo", json!({}))).json()["id"], id);
    }
    let calls = harness.log.until("tools/call", 20);
    let ids: Vec<u64> = calls.iter().map(|call| call["id"].as_u64().unwrap()).collect();
    assert!(ids.iter().all(|id| *id < 1 << 53), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 20, "{ids:?}");
    let near = ids.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 32).count();
    assert_eq!(near, 0, "one follows from another: {ids:?}");
}

#[test]
fn carriage_returns_of_a_server_do_not_end_an_event() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    let mut message = call(1, "carriage_returns", json!({}));
    message["params"]["_meta"] = json!({"progressToken": "t"});
    let reply = client.post(&message);
    assert_eq!(reply.events.len(), 2, "{reply:?}");
    assert_eq!(reply.events[0]["params"]["progress"], 1);
    assert_eq!(reply.json()["result"]["content"], json!([]));
    // One line is also one message.
    let server = harness.place.serve();
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    peer.ask("x", "tools/call", json!({"name": "everything__carriage_returns"}));
    let raw = peer.try_receive_raw().unwrap();
    assert!(!raw.contains(&b'\r'), "{}", raw.escape_ascii());
}

/// A request without an id is not a call, but some servers treat it as one.
#[test]
fn a_notification_does_not_let_a_narrow_token_call_a_tool() {
    let (harness, client) = gate_with_a_narrow_token(ServerConfig::with("share = 'session'"));
    let notified = client
        .post(&json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "whoami"}}));
    assert_eq!(notified.status, 202);
    let notified = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
    assert_eq!(notified.status, 202);
    assert!(client.post(&request(1, "ping", json!({}))).json()["result"].is_object());
    harness.log.until("notifications/x", 1);
    assert_eq!(called(&harness), [""; 0]);
}
