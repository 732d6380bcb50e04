//! MCP as clients of every revision see it.

use patterm_host::tools::ErrorKind;
use patterm_store::limits::Limits;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Serving, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

fn served() -> (Place, Serving) {
    let place = Place::new();
    let server = place.serve_in_process();
    (place, server)
}

/// The metadata that every request of the stateless revision carries.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
    });
    params
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

fn initialize(peer: &mut Peer, version: Value) -> Value {
    let mut params = json!({"capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    if !version.is_null() {
        params["protocolVersion"] = version;
    }
    peer.answer(1, "initialize", params)
}

#[test]
fn a_client_gets_the_revision_it_names_if_we_know_it() {
    let (_place, server) = served();
    for (asked, expected) in [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (Value::Null, "2025-06-18"),
        (json!("1999-01-01"), "2025-11-25"),
        (json!("2099-01-01"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
    ] {
        let mut peer = server.connect(SOCKET);
        let answer = initialize(&mut peer, asked.clone());
        assert_eq!(answer["result"]["protocolVersion"], expected, "{asked}");
        peer.notify("notifications/initialized", json!({}));
        // The negotiated revision counts, not the requested one: `ping` exists in all of these.
        assert_eq!(peer.answer(2, "ping", json!({}))["result"], json!({}), "{asked}");
    }
    let mut peer = server.connect(SOCKET);
    let answer = initialize(&mut peer, json!(5));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("protocolVersion"));
}

#[test]
fn initialize_names_the_server_and_instructs_an_agent() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    let (_, token) = server.agent("lead", None);
    peer.greet(&token.reveal(), None);
    let result = initialize(&mut peer, json!("2025-11-25"))["result"].take();
    assert_eq!(result["serverInfo"]["name"], "patterm");
    assert_eq!(result["serverInfo"]["version"], patterm_host::VERSION);
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    let instructions = result["instructions"].as_str().unwrap();
    for needed in [
        "inside patterm",
        "socket",
        "spawn_agent",
        "whoami",
        "help",
        "close",
        "own pane",
        "idle timer",
        "wait_for_pattern",
    ] {
        assert!(instructions.contains(needed), "{needed}");
    }
}

#[test]
fn a_caller_without_a_pane_is_told_how_to_wait_and_nothing_about_its_own_pane() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    let result = initialize(&mut peer, json!("2025-11-25"))["result"].take();
    let instructions = result["instructions"].as_str().unwrap();
    for needed in ["no pane of your own", "wait_for_agents", "get_process_output", "whoami", "help"]
    {
        assert!(instructions.contains(needed), "{needed}");
    }
    for wrong in ["inside patterm", "in your own pane", "end your turn"] {
        assert!(!instructions.contains(wrong), "{wrong}");
    }
}

#[test]
fn requests_before_any_handshake_are_served() {
    let (_place, server) = served();
    for transport in Transport::ALL {
        let mut peer = server.connect(transport);
        let tools = peer.answer("x", "tools/list", json!({}))["result"]["tools"].take();
        assert_eq!(tools[0]["name"], "whoami", "{transport:?}");
        let me = peer.answer("y", "whoami", json!({}))["result"].take();
        assert_eq!(me["caller"], json!({"role": "external"}), "{transport:?}");
    }
}

#[test]
fn every_legacy_revision_is_served() {
    let (_place, server) = served();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = server.connect(SOCKET);
        initialize(&mut peer, json!(revision));
        for (method, params, expected) in [
            ("ping", json!({}), json!({})),
            ("logging/setLevel", json!({"level": "debug"}), json!({})),
            ("resources/list", json!({}), json!({"resources": []})),
            ("resources/templates/list", json!({}), json!({"resourceTemplates": []})),
            ("prompts/list", json!({"cursor": null}), json!({"prompts": []})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"},
                    "argument": {"name": "a", "value": "b"}}),
                json!({"completion": {"values": []}}),
            ),
        ] {
            let answer = peer.answer(2, method, params);
            assert_eq!(answer["result"], expected, "{revision} {method}: {answer}");
        }
        for method in ["roots/list_changed", "initialized", "cancelled", "anything/else"] {
            peer.notify(&format!("notifications/{method}"), json!({"requestId": 99}));
        }
        assert_eq!(peer.finish(), Vec::<Value>::new(), "notifications get no answer");
    }
}

#[test]
fn the_stateless_revision_needs_no_handshake_and_sends_the_required_fields() {
    let (_place, server) = served();
    for transport in Transport::ALL {
        let mut peer = server.connect(transport);
        let found = peer.answer("d", "server/discover", modern(json!({})))["result"].take();
        assert_eq!(found["resultType"], "complete", "{found}");
        let versions = found["supportedVersions"].as_array().unwrap();
        assert_eq!(versions.len(), 5, "{found}");
        assert!(found["instructions"].as_str().unwrap().contains("no pane of your own"));
        let listed = peer.answer(1, "tools/list", modern(json!({})))["result"].take();
        assert_eq!(listed["resultType"], "complete");
        assert!(listed["ttlMs"].is_number() && listed["cacheScope"].is_string(), "{listed}");
        let me = peer.answer(2, "tools/call", modern(call("whoami", json!({}))))["result"].take();
        assert_eq!(me["resultType"], "complete");
        assert_eq!(me["structuredContent"]["caller"]["role"], "external");
        for gone in ["ping", "logging/setLevel"] {
            let answer = peer.answer(3, gone, modern(json!({"level": "debug"})));
            assert_eq!(answer["error"]["code"], -32601, "{gone}");
            assert_eq!(answer["error"]["data"], gone);
        }
    }
}

#[test]
fn stateless_requests_without_required_fields_are_refused() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let answer = peer.answer(1, "tools/list", bare);
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("clientCapabilities"));
    let mut future = modern(json!({}));
    future["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let answer = peer.answer(2, "tools/list", future);
    assert_eq!(answer["error"]["code"], -32022);
    assert!(
        answer["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28"))
    );
    let answer = peer.answer(3, "tools/list", json!({"_meta": 5}));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn legacy_and_stateless_requests_share_one_connection() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    // As claude connects: a stateless probe, then a legacy handshake.
    assert!(peer.answer("probe", "server/discover", modern(json!({})))["result"].is_object());
    initialize(&mut peer, json!("2025-11-25"));
    peer.notify("notifications/initialized", json!({}));
    let old = peer.answer(2, "tools/list", json!({}))["result"].take();
    assert_eq!(old.get("resultType"), None);
    let new = peer.answer(3, "tools/list", modern(json!({})))["result"].take();
    assert_eq!(new["resultType"], "complete");
    assert_eq!(peer.answer(4, "ping", json!({}))["result"], json!({}));
}

#[test]
fn a_tool_answers_as_text_and_as_structured_content() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    let answer = peer.answer(1, "tools/call", call("help", json!({"topic": "errors", "more": 1})));
    let result = &answer["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    assert_eq!(text["topic"], "errors");
    assert_eq!(result["isError"], false);
    for arguments in [json!({}), json!({"topic": "topics"}), json!({"topic": null})] {
        let answer = peer.answer(2, "tools/call", call("help", arguments));
        let index = answer["result"]["structuredContent"]["text"].as_str().unwrap();
        for topic in [
            "spawning",
            "lifecycle",
            "messaging",
            "timers",
            "scratchpads",
            "waiting",
            "errors",
            "whoami",
            "help",
        ] {
            assert!(index.contains(&format!("- {topic}: ")), "{topic}");
        }
    }
}

#[test]
fn calls_that_cannot_be_routed_are_protocol_errors_that_name_the_problem() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    for (params, named) in [
        (call("nonsense", json!({})), "nonsense"),
        (json!({}), "name"),
        (json!({"name": 5}), "name"),
        (json!({"name": "help", "arguments": []}), "arguments"),
        (json!([]), "params"),
    ] {
        let answer = peer.answer(1, "tools/call", params.clone());
        assert_eq!(answer["error"]["code"], -32602, "{params}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(named), "{answer}");
    }
    let answer = peer.answer(2, "no/such/method", json!({}));
    let expected = json!({"code": -32601, "message": "Method not found", "data": "no/such/method"});
    assert_eq!(answer["error"], expected);
}

#[test]
fn each_kind_of_failure_has_its_two_forms() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    for kind in ErrorKind::ALL {
        let arguments = json!({"kind": kind.name()});
        let called = peer.answer(1, "tools/call", call("test_fail", arguments.clone()));
        let result = &called["result"];
        assert_eq!(result["isError"], true);
        let text = format!("as requested ({})", kind.name());
        assert_eq!(result["content"], json!([{"type": "text", "text": text}]));
        let error = json!({"kind": kind.name(), "message": "as requested"});
        assert_eq!(result["structuredContent"], json!({"error": error}));
        let asked = peer.answer(2, "test_fail", arguments);
        assert_eq!(asked["error"]["code"], kind.code());
        assert_eq!(asked["error"]["data"], json!({"kind": kind.name()}));
    }
    let wrong = peer.answer(3, "tools/call", call("help", json!({"topic": [1]})));
    let error = &wrong["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "invalid_argument");
    assert_eq!(error["message"], "`topic` takes a string, not an array");
}

#[test]
fn a_panic_fails_only_its_own_call() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    peer.ask("waits", "tools/call", call("test_wait", json!({})));
    for (id, reports) in [("at once", 0), ("later", 3)] {
        let arguments = json!({"reports": reports});
        let answer = peer.answer(id, "tools/call", call("test_panic", arguments.clone()));
        assert_eq!(answer["error"]["code"], -32603);
        assert_eq!(peer.answer(id, "test_panic", arguments)["error"]["code"], -32603);
    }
    assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
    let left = peer.finish();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["id"], "waits");
    assert_eq!(left[0]["result"]["structuredContent"], json!({"ok": true}));
}

#[test]
fn a_slow_call_delays_no_other_and_a_cancelled_one_is_not_answered() {
    let (_place, server) = served();
    for transport in Transport::ALL {
        let mut peer = server.connect(transport);
        for id in [1, 2] {
            peer.ask(id, "tools/call", call("test_wait", json!({})));
        }
        assert_eq!(peer.answer(3, "ping", json!({}))["result"], json!({}));
        peer.notify("notifications/cancelled", json!({"requestId": 1, "reason": "enough"}));
        peer.notify("notifications/cancelled", json!({"requestId": "1"}));
        // The id is free again, and cancelling what is answered already does nothing.
        assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
        peer.notify("notifications/cancelled", json!({"requestId": 1}));
        let left = peer.finish();
        assert_eq!(left.len(), 1, "{transport:?}: {left:?}");
        assert_eq!(left[0]["id"], 2);
    }
}

#[test]
fn progress_carries_the_clients_token_and_precedes_the_answer() {
    let (_place, server) = served();
    let mut peer = server.connect(SOCKET);
    for token in [json!("t"), json!(7)] {
        let mut params = call("test_wait", json!({"reports": 3, "once": true}));
        params["_meta"] = json!({"progressToken": token});
        peer.ask(1, "tools/call", params);
        for n in 0..3 {
            let notice = peer.receive();
            assert_eq!(notice["method"], "notifications/progress", "{notice}");
            let expected =
                json!({"progressToken": token, "progress": f64::from(n), "message": "waiting"});
            assert_eq!(notice["params"], expected);
        }
        assert_eq!(peer.receive()["id"], 1);
    }
    let quiet =
        peer.answer(2, "tools/call", call("test_wait", json!({"reports": 3, "once": true})));
    assert_eq!(quiet["result"]["isError"], false, "no token, no progress");
}

#[test]
fn an_answer_that_is_too_long_for_clients_says_how_to_request_less() {
    let (_place, server) = served();
    let limit = Limits::default().answer_bytes;
    assert!(limit < 8 << 20);
    for transport in [SOCKET, Transport::Proxy(Framing::Headers)] {
        let mut peer = server.connect(transport);
        // The answer is in the result twice.
        peer.ask(1, "tools/call", call("test_large", json!({"bytes": limit / 2 - 1_000})));
        let whole = peer.try_receive_raw().unwrap();
        assert!(whole.len() > limit - 4_000 && whole.len() < limit, "{}", whole.len());
        let answer = peer.answer(2, "tools/call", call("test_large", json!({"bytes": limit / 2})));
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!(error["kind"], "limit");
        assert!(error["message"].as_str().unwrap().contains("ask for less"));
        let asked = peer.answer(3, "test_large", json!({"bytes": limit}));
        assert_eq!(asked["error"]["code"], ErrorKind::Limit.code());
    }
}

#[test]
fn calls_in_flight_and_connections_are_limited_with_a_clear_error() {
    let place = Place::new();
    let limits = Limits { calls_in_flight: 3, connections: 2, ..Limits::default() };
    let server = place.serve_with(limits);
    let mut peer = server.connect(SOCKET);
    for id in 1..=3 {
        peer.ask(id, "tools/call", call("test_wait", json!({})));
    }
    let refused = peer.answer(4, "tools/call", call("test_wait", json!({})));
    assert_eq!(refused["error"]["code"], ErrorKind::Limit.code());
    assert!(refused["error"]["message"].as_str().unwrap().contains("3 calls"));
    peer.notify("notifications/cancelled", json!({"requestId": 2}));
    assert_eq!(peer.answer(5, "ping", json!({}))["result"], json!({}));

    let mut second = server.connect(SOCKET);
    assert_eq!(second.answer(1, "ping", json!({}))["result"], json!({}));
    let mut third = server.connect(SOCKET);
    let refused = third.receive();
    assert_eq!(refused["error"]["code"], ErrorKind::Limit.code());
    assert_eq!(third.try_receive(), None, "and closed");
    let mut through_proxy = server.connect(Transport::Proxy(Framing::Newline));
    let refused = through_proxy.answer(1, "ping", json!({}));
    assert_eq!(refused["error"]["code"], ErrorKind::Limit.code(), "{refused}");
    second.finish();
    let mut again = server.connect(SOCKET);
    assert_eq!(again.answer(1, "ping", json!({}))["result"], json!({}), "room again");
}
