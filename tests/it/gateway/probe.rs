//! The behaviour probe: requirements on every relay, and the endpoints' own rules.

use std::net::Shutdown;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, Exchange, call, request};
use super::harness::{Harness, ServerConfig};

fn whoami(client: &Client) -> Value {
    let answer = client.post(&call(1, "whoami", json!({}))).json();
    let content = answer["result"]["structuredContent"].clone();
    assert_eq!(content["server"]["name"], "everything-mcp", "{answer}");
    content
}

#[test]
fn the_same_id_twice_in_flight() {
    let harness = Harness::of(ServerConfig::default());
    // From one client: the second is refused, and the first is answered.
    let client = Client::greeted(&harness);
    let first = client.send(&call(1, "slow", json!({"milliseconds": 400, "n": 1})));
    harness.log.until("tools/call", 1);
    let second = client.post(&call(1, "slow", json!({"n": 2})));
    assert_eq!((second.status, &second.json()["error"]["code"]), (400, &json!(-32600)));
    let answer = Exchange::of(first).rest().json();
    assert_eq!(answer["result"]["structuredContent"]["n"], 1, "{answer}");
    // From clients without sessions, which cannot know of each other: each gets its own response.
    let sent: Vec<_> = (0..4)
        .map(|n| Client::of(&harness).send(&call(1, "slow", json!({"milliseconds": 200, "n": n}))))
        .collect();
    for (n, stream) in sent.into_iter().enumerate() {
        let answer = Exchange::of(stream).rest().json();
        assert_eq!(answer["result"]["structuredContent"]["n"], n, "{answer}");
    }
}

#[test]
fn a_request_from_another_origin_starts_nothing() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::of(&harness);
    let message = call(1, "whoami", json!({}));
    for (status, header) in [
        (403, ("Origin", "http://evil.example")),
        (403, ("Origin", "null")),
        (403, ("Host", "evil.example")),
        (403, ("Host", "127.0.0.1.evil.example")),
        (401, ("Authorization", "Bearer guessed")),
        (401, ("Authorization", "")),
        (415, ("Content-Type", "text/plain")),
    ] {
        let reply = client.post_with(&message, &[header]);
        assert_eq!(reply.status, status, "{header:?}: {reply:?}");
    }
    assert_eq!(harness.log.starts(), 0);
    for header in [("Origin", "http://localhost:3000"), ("Host", "127.0.0.1:1")] {
        assert_eq!(client.post_with(&message, &[header]).status, 200, "{header:?}");
    }
    assert_eq!(harness.log.starts(), 1);
}

#[test]
fn a_disconnect_is_reported_and_others_continue() {
    let harness = Harness::of(ServerConfig::default());
    let gone = Client::of(&harness).send(&call(1, "hang", json!({})));
    let stays = Client::of(&harness).send(&call(1, "slow", json!({"milliseconds": 500})));
    let calls = harness.log.until("tools/call", 2);
    gone.shutdown(Shutdown::Both).unwrap();
    let notified = harness.log.until("notifications/cancelled", 1);
    let hung = calls.iter().find(|call| call["params"]["name"] == "hang").unwrap();
    assert_eq!(notified[0]["params"]["requestId"], hung["id"]);
    assert_eq!(Exchange::of(stays).rest().json()["id"], 1);
}

#[test]
fn a_killed_server_is_started_again() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    let before = whoami(&client);
    let waiting = client.send(&call(2, "hang", json!({})));
    harness.log.until("tools/call", 2);
    let pid = Pid::from_raw(before["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let ended = Exchange::of(waiting).rest().json();
    assert_eq!(ended["error"]["data"]["kind"], "server_ended", "{ended}");
    assert!(ended["error"]["message"].as_str().unwrap().contains("signal 9"), "{ended}");
    assert_ne!(whoami(&client)["pid"], before["pid"]);
    assert_ne!(whoami(&Client::greeted(&harness))["pid"], before["pid"]);
    assert_eq!(harness.log.starts(), 2);
}

#[test]
fn later_sessions_are_served_like_the_first() {
    let harness = Harness::of(ServerConfig::default());
    let first = Client::greeted(&harness);
    let pid = whoami(&first)["pid"].clone();
    assert_eq!(first.delete().status, 204);
    assert_eq!(first.post(&call(1, "whoami", json!({}))).status, 404, "it is over");
    assert_eq!(first.delete().status, 404);
    for _ in 0..3 {
        let later = Client::greeted(&harness);
        assert_eq!(whoami(&later)["pid"], pid);
        // A session belongs to its token.
        let mut stranger = later.clone();
        stranger.token = harness.tokens[1].clone();
        assert_eq!(stranger.post(&call(1, "whoami", json!({}))).status, 404);
        assert_eq!(later.delete().status, 204);
    }
    assert_eq!((harness.log.starts(), harness.log.count("initialize")), (1, 1));
}

#[test]
fn messages_outside_requests_come_by_get_and_can_be_resumed() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    let change = |n: usize| {
        client.post(&call("change", "test_trigger_tool_change", json!({})));
        harness.log.until("tools/call", n);
    };
    let mut stream = client.listen(&[]);
    assert_eq!(stream.status, 200);
    change(1);
    let (id, event) = stream.event().unwrap();
    assert_eq!(event["method"], "notifications/tools/list_changed", "{event}");
    drop(stream);
    change(2);
    let mut stream = client.listen(&[("Last-Event-ID", &id)]);
    let (next, event) = stream.event().unwrap();
    assert_eq!(event["method"], "notifications/tools/list_changed", "{event}");
    assert_ne!(next, id);
    assert_eq!(client.delete().status, 204);
    assert!(stream.event().is_none(), "the end of the session is the end of its stream");
    // Without a session there is no stream.
    assert_eq!(Client::of(&harness).listen(&[]).rest().status, 405);
}

#[test]
fn older_clients_are_notified_of_changed_lists_of_a_stateless_server() {
    let harness = Harness::of(ServerConfig::started(&["--era", "modern"]));
    let client = Client::greeted(&harness);
    let mut stream = client.listen(&[]);
    harness.log.until("subscriptions/listen", 1);
    client.post(&call(1, "test_trigger_tool_change", json!({})));
    let (_, event) = stream.event().unwrap();
    assert_eq!(event["method"], "notifications/tools/list_changed", "{event}");
}

#[test]
fn an_interrupted_answer_can_be_resumed() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 5}});
    let mut stream = client.begin_with(&request("p", "tools/call", params), &[]);
    let (id, event) = stream.event().unwrap();
    assert_eq!(event["params"]["progress"], 0, "{event}");
    drop(stream);
    let rest = client.listen(&[("Last-Event-ID", &id)]).rest();
    let progress: Vec<_> = rest.events.iter().map(|e| e["params"]["progress"].clone()).collect();
    assert_eq!(progress, [json!(50), json!(100), Value::Null], "{rest:?}");
    assert_eq!(rest.json()["id"], "p", "{rest:?}");
    assert_eq!(harness.log.count("notifications/cancelled"), 0);
}

#[test]
fn requests_that_a_revision_does_not_have_are_refused_with_the_reason() {
    let harness = Harness::of(ServerConfig::default());
    let client = Client::greeted(&harness);
    let text = |body: &str| Exchange::of(client.send_text("POST", Client::PATH, &[], body)).rest();
    for (body, code) in [("[]", -32600), (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600)]
    {
        let reply = text(body);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let reply = text("{not json");
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32700)));
    let ping = request(1, "ping", json!({}));
    let reply = client.post_with(&ping, &[("MCP-Protocol-Version", "1999-01-01")]);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32022)));
    assert_eq!(client.post_with(&ping, &[("MCP-Protocol-Version", "2025-06-18")]).status, 200);
    // The stateless revision has no handshake, and describes itself.
    let reply = Client::of(&harness).post_modern(&request(1, "initialize", json!({})));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!(-32601)));
    let reply = Client::of(&harness).post_modern(&request(1, "server/discover", json!({})));
    assert_eq!(
        (reply.status, &reply.json()["result"]["supportedVersions"][0]),
        (200, &json!("2026-07-28"))
    );
    let nobody = Client::of(&harness);
    let stream = nobody.send_text("POST", "/servers/nobody/mcp", &[], &ping.to_string());
    assert_eq!(Exchange::of(stream).rest().status, 404);
}
