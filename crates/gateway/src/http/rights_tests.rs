//! What tokens permit, what revoking them ends, and what is recorded.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::EndpointLimits;
use super::tests::{Http, call, initialize};
use crate::Share;

async fn as_token(http: &Http, token: &str, body: &Value) -> Value {
    let bearer = format!("Bearer {token}");
    http.post(&[("Authorization", &bearer)], body).await.json()
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_token_sees_and_uses_only_the_tools_it_permits() {
    let http = Http::new(Share::All).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (token, tools) in
        [("good", vec!["look", "x", "hang"]), ("reader", vec!["look"]), ("looker", vec!["look"])]
    {
        assert_eq!(names(&as_token(&http, token, &list).await), tools, "{token}");
    }
    let sent = http.harness.log.count("tools/call");
    for token in ["reader", "looker"] {
        let answer = as_token(&http, token, &call(1, "look")).await;
        assert_eq!(answer["result"]["of"], 1, "{token}: {answer}");
        for bad in [
            call(2, "x").to_string(),
            // The whole body counts.
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look","n\u0061me":"x"}}"#.into(),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":["x"]}"#.into(),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#.into(),
            r#"{"jsonrpc":"2.0","id":2,"method":"x-vendor/set","params":{"name":"look"}}"#.into(),
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#.into(),
        ] {
            let bearer = format!("Bearer {token}");
            let headers = [("Authorization", bearer.as_str())];
            let answer = http.send("POST", "/servers/played/mcp", &headers, &bad).await.json();
            assert!(answer["error"]["code"].is_i64(), "{token} {bad}: {answer}");
        }
    }
    assert_eq!(http.harness.log.count("tools/call"), sent + 2, "nothing else reached the server");
    assert_eq!(http.harness.log.count("logging/setLevel"), 0, "it would change the server for all");
    let servers = http.send("GET", "/servers", &[("Authorization", "Bearer narrow")], "").await;
    assert_eq!(servers.json()["servers"], json!([]));
}

#[tokio::test]
async fn revoking_a_token_ends_its_sessions() {
    let http = Http::new(Share::All).await;
    let other = ("Authorization", "Bearer other");
    let begun = http.post(&[other], &initialize()).await;
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let mut stream = TcpStream::connect(http.address).await.unwrap();
    let head = format!(
        "GET /servers/played/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer other\r\n\
         Accept: text/event-stream\r\nConnection: close\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    http.tokens.revoke("other");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    let own = [other, ("Mcp-Session-Id", session.as_str())];
    assert_eq!(http.post(&own, &call(1, "x")).await.status, 401);
    let foreign = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(http.post(&foreign, &call(1, "x")).await.status, 404);
}

#[tokio::test]
async fn every_request_is_recorded_and_counted() {
    let http = Http::new(Share::All).await;
    http.post(&[], &call(1, "x")).await;
    http.post(&[("Authorization", "")], &call(1, "x")).await;
    http.post(&[("Host", "evil.example")], &call(1, "x")).await;
    http.post(&[("Authorization", "Bearer looker")], &call(1, "x")).await;
    http.post(&[], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    http.post(&[], &call(2, "progress")).await;
    let body = call(3, "hang").to_string();
    let mut stream = TcpStream::connect(http.address).await.unwrap();
    let head = format!(
        "POST /servers/played/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    http.harness.log.until(|log| log.count("tools/call") == 3).await;
    drop(stream);
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    let data = http.audit.0.lock().unwrap().clone();
    assert_eq!(
        data,
        [
            "good played tools/call x ok 200",
            "- played - - refused 401",
            "- played - - refused 403",
            "looker played tools/call x error 200",
            "good played notifications/initialized - ok 202",
            "good played tools/call progress ok 200",
            "good played tools/call hang cancelled 0",
        ]
    );
    let metrics = http.send("GET", "/metrics", &[], "").await.body;
    for line in [
        "patterm_http_requests_total{status=\"2xx\"} 4",
        "patterm_http_requests_total{status=\"4xx\"} 2",
        "patterm_http_refused_total{status=\"401\"} 1",
        "patterm_http_refused_total{status=\"403\"} 1",
        "patterm_http_cancelled_total 1",
        "patterm_http_request_seconds_count 7",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn slow_clients_are_disconnected_and_excess_connections_wait() {
    let header_timeout = Duration::from_millis(50);
    let limits =
        EndpointLimits { sessions: 1, connections: 2, header_timeout, ..EndpointLimits::default() };
    let http = Http::with(Share::All, limits).await;
    let mut slow = TcpStream::connect(http.address).await.unwrap();
    slow.write_all(b"POST /servers/played/mcp HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 2"), "{rest:?}");
    // Two silent connections take all the room, and are closed before the third is served.
    let _idle = [
        TcpStream::connect(http.address).await.unwrap(),
        TcpStream::connect(http.address).await.unwrap(),
    ];
    assert_eq!(http.post(&[], &initialize()).await.status, 200);
    let one_too_many = http.post(&[], &initialize()).await;
    assert_eq!(one_too_many.status, 429, "{one_too_many:?}");
    assert_eq!(http.harness.log.count("tools/call"), 0);
}
