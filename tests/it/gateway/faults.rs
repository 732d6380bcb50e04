//! The typical faults of such relays, each under its number in the design; the ninth, about owners
//! of containers, is tested with containers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, Exchange, call, request};
use super::harness::{Harness, ServerConfig};

/// The structured result of a tool.
#[track_caller]
fn content(answer: &Value) -> &Value {
    let content = &answer["result"]["structuredContent"];
    assert!(!content.is_null(), "{answer}");
    content
}

#[track_caller]
fn kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Closes the connection abruptly.
fn leave(stream: TcpStream) {
    stream.shutdown(Shutdown::Both).unwrap();
}

#[test]
fn fault_01_two_callers_with_one_id() {
    let harness = Harness::of(ServerConfig::default());
    let clients = [Client::of(&harness), Client::greeted(&harness), Client::greeted(&harness)];
    let patience = |n: usize| json!({"milliseconds": 300 - 100 * n, "caller": n});
    let sent: Vec<_> =
        clients.iter().enumerate().map(|(n, c)| c.send(&call(1, "slow", patience(n)))).collect();
    for (n, stream) in sent.into_iter().enumerate() {
        let answer = Exchange::of(stream).rest().json();
        assert_eq!((&answer["id"], &content(&answer)["caller"]), (&json!(1), &json!(n)));
    }
    // Ids are returned byte for byte.
    for id in ["9007199254740993", "-7", "\"1\"", "\"\\u0061 \\\"b\\\"\"", "\"\""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let stream = clients[1].send_text("POST", Client::PATH, &[], &text);
        let body = Exchange::of(stream).rest().body;
        assert!(body.contains(&format!("\"id\":{id}")), "{id}: {body}");
    }
    let ids = harness.log.until("tools/call", 3);
    let mut ids: Vec<_> = ids.iter().map(|call| call["id"].as_u64().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "on the wire each has an id of its own");
}

#[test]
fn fault_02_a_session_outlives_its_first_request() {
    let harness = Harness::of(ServerConfig::default());
    let first = Client::of(&harness).send(&call(1, "hang", json!({})));
    harness.log.until("tools/call", 1);
    leave(first);
    harness.log.until("notifications/cancelled", 1);
    let answer = Client::of(&harness).post(&call(1, "whoami", json!({}))).json();
    assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
    assert_eq!(harness.log.starts(), 1);
}

#[test]
fn fault_03_two_first_calls_start_one_server() {
    let harness = Harness::of(ServerConfig::started(&["--greeting", "200"]));
    let together = Arc::new(Barrier::new(16));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (client, together) = (Client::of(&harness), together.clone());
            std::thread::spawn(move || {
                together.wait();
                client.post(&call(1, "whoami", json!({}))).json()
            })
        })
        .collect();
    let answers: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    for answer in &answers {
        assert_eq!(content(answer), content(&answers[0]), "one process serves them all");
    }
    assert_eq!((harness.log.starts(), harness.log.count("initialize")), (1, 1));
    assert_eq!(harness.log.count("notifications/initialized"), 1);
}

#[test]
fn fault_04_the_first_caller_leaves_during_the_handshake() {
    let harness = Harness::of(ServerConfig::started(&["--era", "legacy", "--greeting", "500"]));
    let first = Client::of(&harness).send(&call(1, "whoami", json!({})));
    harness.log.until("initialize", 1);
    leave(first);
    // This server refuses a second handshake.
    let second = Client::greeted(&harness);
    let answer = second.post(&call(2, "whoami", json!({}))).json();
    assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
    assert_eq!(harness.log.count("initialize"), 1);
    assert_eq!(harness.log.count("notifications/initialized"), 1);
}

#[test]
fn fault_05_a_callers_own_initialize_is_answered_from_the_first() {
    let harness = Harness::of(ServerConfig::default());
    let clients = [Client::greeted(&harness), Client::greeted(&harness), Client::greeted(&harness)];
    for (id, version) in [("one", "2025-06-18"), ("two", "2025-11-25")] {
        let info = json!({"name": "x", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let answer = Client::of(&harness).post(&request(id, "initialize", params)).json();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "everything-mcp", "{answer}");
    }
    for client in &clients {
        let answer = client.post(&call(1, "whoami", json!({}))).json();
        assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
    }
    assert_eq!(harness.log.count("initialize"), 1);
    assert_eq!(harness.log.count("notifications/initialized"), 1);
}

#[test]
fn fault_06_unsolicited_messages_of_the_server_reach_a_caller() {
    let harness = Harness::of(ServerConfig::default());
    let (one, two) = (Client::greeted(&harness), Client::greeted(&harness));
    // Its requests are answered, or refused at once.
    let ask = |method: &str| one.post(&call(1, "ask", json!({"method": method}))).json();
    assert_eq!(content(&ask("ping"))["result"], json!({}));
    let roots = ask("roots/list");
    let root = content(&roots)["result"]["roots"][0]["uri"].as_str().unwrap();
    assert!(root.starts_with("file:///") && root.ends_with("/project"), "{root}");
    for method in ["sampling/createMessage", "elicitation/create"] {
        let refused = ask(method);
        assert_eq!(content(&refused)["error"]["code"], -32601, "{refused}");
    }
    // Progress reaches the right call, under the caller's token; both chose the same.
    let params = json!({
        "name": "test_tool_with_progress",
        "_meta": {"progressToken": "t"},
    });
    let message = request(7, "tools/call", params);
    let sent = [one.send(&message), two.send(&message)];
    for stream in sent {
        let reply = Exchange::of(stream).rest();
        let told: Vec<_> =
            reply.events.iter().filter(|e| e["method"] == "notifications/progress").collect();
        assert_eq!(told.len(), 3, "{reply:?}");
        assert!(told.iter().all(|event| event["params"]["progressToken"] == "t"), "{told:?}");
        assert_eq!(reply.json()["id"], 7, "{reply:?}");
    }
    // Progress with an unknown token reaches nobody.
    let reply = one.post(&call(8, "progress_of_another", json!({"token": 1})));
    assert_eq!(reply.events.len(), 0, "{reply:?}");
}

#[test]
fn fault_06_a_server_with_one_caller_may_send_requests() {
    let harness = Harness::of(ServerConfig::with("share = 'session'"));
    let able = json!({"sampling": {}});
    let clients =
        [0, 1].map(|n: usize| Client::greeted_with(&harness, &harness.tokens[n], able.clone()));
    let mut asked: Vec<_> = clients
        .iter()
        .map(|client| client.begin_with(&call(1, "test_sampling", json!({"prompt": "?"})), &[]))
        .collect();
    // Both get a request with the same id, each on the stream of its own call.
    for (n, (client, asked)) in clients.iter().zip(&mut asked).enumerate().rev() {
        let (_, question) = asked.event().unwrap();
        assert_eq!(question["method"], "sampling/createMessage", "{question}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": format!("by {n}")});
        assert_eq!(client.post(&answer).status, 202);
    }
    for (n, mut asked) in asked.into_iter().enumerate() {
        let (_, answer) = asked.event().unwrap();
        assert!(answer.to_string().contains(&format!("by {n}")), "{answer}");
        assert!(asked.event().is_none());
    }
    assert_eq!(harness.log.starts(), 2);
}

#[test]
fn fault_07_the_server_is_notified_when_a_caller_leaves() {
    let harness = Harness::of(ServerConfig::with("call_seconds = 1.5"));
    let client = Client::greeted(&harness);
    let cancelled = |times: usize| {
        let calls = harness.log.until("tools/call", times);
        let told = harness.log.until("notifications/cancelled", times);
        assert_eq!(told[times - 1]["params"]["requestId"], calls[times - 1]["id"]);
    };
    // The caller disconnects.
    let gone = client.send(&call(1, "hang", json!({})));
    harness.log.until("tools/call", 1);
    leave(gone);
    cancelled(1);
    // The caller cancels.
    let waiting = client.send(&call("two", "hang", json!({})));
    harness.log.until("tools/call", 2);
    let params = json!({"requestId": "two", "reason": "enough"});
    let told = client
        .post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    assert_eq!(told.status, 202);
    cancelled(2);
    assert_eq!(harness.log.until("notifications/cancelled", 2)[1]["params"]["reason"], "enough");
    leave(waiting);
    // The call takes too long.
    let late = client.post(&call(3, "hang", json!({}))).json();
    assert_eq!((kind(&late), &late["id"]), ("timeout", &json!(3)), "{late}");
    cancelled(3);
    // A stateless caller, in the middle of its events; listening has no deadline.
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut stream =
        Client::of(&harness).begin_modern(&request("l", "subscriptions/listen", params));
    let (_, first) = stream.event().unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    client.post(&call(4, "slow", json!({"milliseconds": 1400})));
    client.post(&call(5, "slow", json!({"milliseconds": 300})));
    client.post(&call(6, "test_trigger_tool_change", json!({})));
    let (_, second) = stream.event().unwrap();
    assert_eq!(second["method"], "notifications/tools/list_changed", "{second}");
    drop(stream);
    let listened = harness.log.until("subscriptions/listen", 1);
    let told = harness.log.until("notifications/cancelled", 4);
    assert_eq!(told[3]["params"]["requestId"], listened[0]["id"]);
    assert_eq!(harness.status()["in_flight"], 0);
}

#[test]
fn fault_08_after_its_death_the_next_call_works() {
    let harness = Harness::of(ServerConfig::default());
    let (client, other) = (Client::greeted(&harness), Client::greeted(&harness));
    let waiting = other.send(&call(5, "hang", json!({})));
    harness.log.until("tools/call", 1);
    let died = client.post(&call(6, "die", json!({}))).json();
    for (answer, id) in [(died, 6), (Exchange::of(waiting).rest().json(), 5)] {
        assert_eq!((kind(&answer), &answer["id"]), ("server_ended", &json!(id)), "{answer}");
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains("exited with code 3; its last output: cannot go on"), "{why}");
    }
    // The sessions of both clients continue, with a server after a new handshake.
    for client in [&client, &other] {
        let answer = client.post(&call(7, "whoami", json!({}))).json();
        assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
    }
    assert_eq!((harness.log.starts(), harness.log.count("initialize")), (2, 2));
    assert_eq!(harness.status()["restarts"], 1);
}

#[test]
fn fault_10_noise_and_long_lines_harm_no_caller() {
    let harness = Harness::of(ServerConfig::default());
    let (client, other) = (Client::greeted(&harness), Client::greeted(&harness));
    let waiting = other.send(&call(1, "slow", json!({"milliseconds": 500})));
    for tool in ["noise", "long_line_of_errors", "noise"] {
        let answer = client.post(&call(1, tool, json!({}))).json();
        assert_eq!(answer["result"]["content"][0]["type"], "text", "{answer}");
    }
    assert_eq!(Exchange::of(waiting).rest().json()["id"], 1);
    assert_eq!(harness.log.starts(), 1);
    let metrics = client.get("/metrics", &[]).body;
    assert!(metrics.contains("patterm_server_noise_total{server=\"everything\"} 4"), "{metrics}");
}

#[test]
fn fault_11_a_server_that_does_not_read_stalls_no_other() {
    let harness = Harness::of(ServerConfig::with("call_seconds = 1.0"));
    let client = Client::greeted(&harness);
    client.post(&call(0, "stop_reading", json!({})));
    // Unread data is buffered up to a limit; beyond it, callers get an error at once.
    let large = "x".repeat(4 << 20);
    let sent: Vec<_> =
        (1..=8).map(|id| client.send(&call(id, "echo", json!({"large": large})))).collect();
    let begun = Instant::now();
    let kinds: Vec<String> = sent
        .into_iter()
        .map(|stream| kind(&Exchange::of(stream).rest().json()).to_owned())
        .collect();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(kinds.iter().any(|kind| kind == "timeout"), "{kinds:?}");
    assert!(kinds.iter().filter(|kind| *kind == "limit").count() >= 4, "{kinds:?}");
    assert_eq!(client.get("/healthz", &[]).status, 200);
    // It is ended like any other, unless it has ended already, and started again.
    if let Some(pid) = harness.status()["pid"].as_i64() {
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    harness.until_status(|status| status["state"] != "running");
    let answer = client.post(&call(9, "whoami", json!({}))).json();
    assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
}

#[test]
fn fault_12_messages_pass_byte_for_byte() {
    let harness = Harness::of(ServerConfig::default());
    for client in [Client::of(&harness), Client::greeted(&harness)] {
        let body = client.post(&call(1, "numbers", json!({}))).body;
        assert!(body.contains(r#""result": {"z": 9007199254740993, "a":12345678901234567890123, "x-vendor":{"b":1.0,"a":1e3}, "content":[ {"type":"hologram","unknown":true} ],"structuredContent":{"n":0.10000000000000000001}}"#), "{body}");
        let body = client.post(&call(1, "detailed_error", json!({}))).body;
        assert!(body.contains(r#""error":{"code":-32099,"message":"as it \u0069s","data":{"z":9007199254740993,"a":[1.0]},"x-vendor":1}"#), "{body}");
    }
    // The same in the other direction.
    let params = r#""params": {"name":"echo", "arguments":{"z":12345678901234567890123,"a":1.0, "\u0061":2},"task":{"ttl":1},"x-vendor":[ ]}"#;
    let text =
        format!(r#"{{"x-first":1,"jsonrpc":"2.0", "method":"tools/call","id":"i",{params}}}"#);
    let client = Client::of(&harness);
    Exchange::of(client.send_text("POST", Client::PATH, &[], &text)).rest();
    let line = harness.log.lines().into_iter().find(|line| line.contains("x-first")).unwrap();
    assert!(
        line.starts_with(r#"{"x-first":1,"jsonrpc":"2.0", "method":"tools/call","id":"#),
        "{line}"
    );
    assert!(line.contains(params), "{line}");
}

#[test]
fn fault_13_calls_and_bytes_are_limited() {
    let refused = |client: &Client, id: u64| {
        // It does not wait for the others, which hang.
        let reply = client.post(&call(id, "whoami", json!({})));
        assert_eq!(kind(&reply.json()), "limit", "{reply:?}");
    };
    // A caller is identified by its token, with any number of sessions.
    let harness = Harness::of(ServerConfig::with("in_flight_of_one = 2"));
    let (one, two) = (Client::greeted(&harness), Client::of(&harness));
    let hanging = [one.send(&call(1, "hang", json!({}))), two.send(&call(1, "hang", json!({})))];
    harness.log.until("tools/call", 2);
    refused(&one, 2);
    refused(&two, 2);
    hanging.into_iter().for_each(leave);
    harness.log.until("notifications/cancelled", 2);
    assert!(one.post(&call(3, "whoami", json!({}))).json()["result"].is_object());

    let settings = "in_flight = 3
message_bytes = 1048576
call_seconds = 3600.0";
    let harness = Harness::of(ServerConfig::with(settings));
    let one = Client::greeted(&harness);
    let hanging = [1, 2, 3].map(|id| one.send(&call(id, "hang", json!({}))));
    harness.log.until("tools/call", 3);
    refused(&one, 4);
    hanging.into_iter().for_each(leave);
    harness.log.until("notifications/cancelled", 3);
    // A body that is too long is not even read.
    let mut stream = one.send_text("POST", Client::PATH, &[("Content-Length", "99999999")], "{");
    let _ = stream.flush();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    // The same for a response, and its caller gets an error long before the call would time out.
    let long = one.post(&call(4, "large", json!({"bytes": 2 << 20}))).json();
    assert_eq!((kind(&long), &long["id"]), ("limit", &json!(4)), "{long}");
    let answer = one.post(&call(5, "whoami", json!({}))).json();
    assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
}

#[test]
fn fault_13_starts_sessions_and_idle_servers_are_limited() {
    let harness = Harness::of(ServerConfig::with(
        "share = 'session'
sessions = 2
idle_seconds = 0.5",
    ));
    let (one, _two) = (Client::greeted(&harness), Client::greeted(&harness));
    let third = Client::of(&harness).post(&request(1, "initialize", json!({})));
    assert_eq!((third.status, kind(&third.json())), (429, "limit"), "{third:?}");
    // An unneeded server is stopped, and a call starts it again.
    harness.until_status(|status| status["state"] == "asleep");
    let answer = one.post(&call(1, "whoami", json!({}))).json();
    assert_eq!(content(&answer)["server"]["name"], "everything-mcp");
    // A server that keeps crashing is not restarted at once, and callers are told so.
    one.post(&call(2, "die", json!({})));
    one.post(&call(3, "die", json!({})));
    let starts = harness.log.starts();
    let refused = one.post(&call(4, "whoami", json!({}))).json();
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("it is not restarted for"), "{why}");
    assert_eq!(harness.log.starts(), starts);
}

#[test]
fn fault_14_a_command_line_is_never_joined() {
    let words = ["--word", "a b", "--word", "$(touch owned); \"'`|&", "--word", ""];
    let harness = Harness::of(ServerConfig::started(&[
        "--word",
        "a b",
        "--word",
        "$(touch owned); \"'`|&",
        "--word",
        "",
    ]));
    let client = Client::greeted(&harness);
    // No part of a request gets there either.
    let given = json!({"argv": ["sh", "-c", "touch owned"], "command": "touch owned"});
    let answer = client.post(&call(1, "arguments", given)).json();
    let argv = content(&answer)["argv"].as_array().unwrap();
    assert_eq!(argv[argv.len() - words.len()..], words.map(Value::from));
    let params = json!({"command": ["touch", "owned"]});
    client.post(&request(2, "initialize", params));
    assert!(!harness.place.path("project").join("owned").exists());
    // A program that does not exist is reported.
    let command = Some(&["no-such-server --stdio"][..]);
    let harness = Harness::of(ServerConfig { command, ..ServerConfig::default() });
    let answer = Client::of(&harness).post(&call(1, "whoami", json!({}))).json();
    assert_eq!(kind(&answer), "unavailable");
    let why = answer["error"]["message"].as_str().unwrap();
    assert!(why.contains("`no-such-server --stdio` cannot be started"), "{why}");
}
