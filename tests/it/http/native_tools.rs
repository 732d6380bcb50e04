//! `POST /mcp`: patterm's own tools over HTTP, with and without sessions.

use std::io::Read;

use patterm_wire::Framing;
use serde_json::{Value, json};

use super::raw::Client;
use super::{call, new_token, open, request};
use crate::support::{Place, Transport};

#[test]
fn a_client_of_an_older_revision_has_a_session() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let begun = client.own(&request(0, "initialize", json!({"protocolVersion": "2025-06-18"})));
    assert_eq!(begun.json()["result"]["serverInfo"]["name"], "patterm", "{begun:?}");
    assert_eq!(begun.json()["result"]["protocolVersion"], "2025-06-18");
    let session = begun.header("mcp-session-id").unwrap();
    let own = [("Mcp-Session-Id", session.as_str())];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.post("/mcp", &own, &initialized).status, 202);
    let whoami = client.post("/mcp", &own, &call(1, "whoami", json!({}))).json();
    let caller = &whoami["result"]["structuredContent"]["caller"];
    assert_eq!((&caller["role"], &caller["name"]), (&json!("external"), &json!("test")));
    // Progress, sent every five seconds, precedes the response to its request.
    let id = place.run(&["run", "--", "cat"]).trim().to_owned();
    let wait = json!({"process_id": id, "pattern": "never", "timeout_seconds": 6});
    let mut wait = call(2, "wait_for_pattern", wait);
    wait["params"]["_meta"] = json!({"progressToken": "mine"});
    let waited = client.post("/mcp", &own, &wait);
    let progress_at =
        waited.body.find(r#""progressToken":"mine""#).unwrap_or_else(|| panic!("{waited:?}"));
    assert!(progress_at < waited.body.find(r#""id":2"#).unwrap(), "{waited:?}");
    assert_eq!(client.send("DELETE", "/mcp", &own, "").status, 204);
    assert_eq!(client.post("/mcp", &own, &call(3, "whoami", json!({}))).status, 404);
}

#[test]
fn a_tools_name_is_a_method_as_on_the_socket() {
    let place = Place::new();
    let (server, client) = open(&place);
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let cases = [
        ("list_processes", json!({})),
        ("help", json!({"topic": "errors"})),
        ("get_process_status", json!({"process_id": "p9"})),
        ("get_process_status", json!({"process_id": 9})),
        ("scratchpad_read", json!({})),
        ("no_such_tool", json!({})),
    ];
    for (method, arguments) in cases {
        let over_http = client.own(&request(1, method, arguments.clone())).json();
        assert_eq!(over_http, peer.answer(1, method, arguments), "{method}");
    }
    let whoami = client.own(&request(2, "whoami", json!({}))).json();
    assert_eq!(whoami["result"]["caller"], json!({"role": "external", "name": "test"}));
    // A token permits the same tools, however they are called.
    let reader = new_token(&place, &["reader", "--read-only"]);
    let reader = Client::new(client.address, &reader);
    assert!(reader.own(&request(3, "whoami", json!({}))).json()["result"].is_object());
    let refused = reader.own(&request(4, "spawn_process", json!({"argv": ["cat"]}))).json();
    assert_eq!(refused["error"]["data"]["kind"], "forbidden", "{refused}");
    assert_eq!(place.run(&["ps", "--json"]), "[]\n");
}

#[test]
fn a_stateless_client_needs_no_session() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let mut discover = request(1, "server/discover", json!({}));
    discover["params"]["_meta"] = meta.clone();
    let answer = client.post("/mcp", &[version, ("Mcp-Method", "server/discover")], &discover);
    assert!(answer.json()["result"]["supportedVersions"].is_array(), "{answer:?}");
    let mut whoami = call(2, "whoami", json!({}));
    whoami["params"]["_meta"] = meta;
    let headers = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "whoami")];
    let answer = client.post("/mcp", &headers, &whoami).json();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let lies = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "help")];
    assert_eq!(client.post("/mcp", &lies, &whoami).status, 400);
}

#[test]
fn a_disconnect_cancels_the_call_and_every_call_is_in_the_audit_log() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let id = place.run(&["run", "--", "cat"]).trim().to_owned();
    let wait = json!({"process_id": id, "pattern": "never", "timeout_seconds": 600});
    let body = call(1, "wait_for_pattern", wait).to_string();
    let mut stream = client.begin("POST", "/mcp", &[("Authorization", "Bearer wrong")], &body);
    let mut refused = String::new();
    stream.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 401"));
    let waiting = client.begin("POST", "/mcp", &[], &body);
    client.own(&call(2, "get_process_status", json!({"process_id": "secret"})));
    client.own(&call(3, "whoami", json!({})));
    drop(waiting);
    place.run(&["kill"]);
    let log = place.state().file("audit.jsonl");
    let text = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let has = |who: &str, tool: &str, outcome: &str| {
        lines.iter().any(|line| {
            let field = |name: &str| line[name].as_str().unwrap_or("-");
            (field("who"), field("tool"), field("outcome")) == (who, tool, outcome)
        })
    };
    assert!(has("-", "-", "refused"), "{text}");
    assert!(has("test", "wait_for_pattern", "cancelled"), "{text}");
    assert!(
        has("test", "get_process_status", "tool_error") && has("test", "whoami", "ok"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}
