//! What browsers and clients of particular revisions expect of the endpoints.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tests::{Answer, Http, call, initialize};
use crate::Share;

const PATH: &str = "/servers/played/mcp";

#[tokio::test]
async fn a_page_of_an_allowed_origin_can_use_the_endpoint() {
    let http = Http::new(Share::All).await;
    let origin = "https://app.example";
    let preflight = [
        ("Authorization", ""),
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "Authorization,content-type, Mcp-Param-Region,x-other"),
        ("Access-Control-Request-Private-Network", "true"),
    ];
    for path in [PATH, "/mcp", "/servers", "/bots/a/containers/b/mcp"] {
        let answer = http.send("OPTIONS", path, &preflight, "").await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{path}: {answer:?}");
        for (name, value) in [
            ("access-control-allow-origin", origin),
            ("access-control-allow-headers", "authorization, content-type, mcp-param-region"),
            ("access-control-allow-private-network", "true"),
            ("vary", "origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}: {answer:?}");
        }
        assert_eq!(answer.header("access-control-allow-methods"), answer.header("allow"));
    }
    let begun = http.post(&[("Origin", origin)], &initialize()).await;
    assert_eq!(begun.header("access-control-allow-origin"), Some(origin), "{begun:?}");
    assert!(begun.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    // A page can read why it is refused.
    let refused = http.post(&[("Origin", origin), ("Authorization", "")], &call(1, "x")).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(origin), "{refused:?}");
    assert_eq!(http.post(&[], &call(1, "x")).await.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_page_of_another_origin_learns_nothing() {
    let http = Http::new(Share::All).await;
    for headers in [
        [("Origin", "https://evil.example"), ("Host", "localhost")],
        [("Origin", "null"), ("Host", "localhost")],
        [("Origin", "https://app.example"), ("Host", "evil.example")],
    ] {
        let answer = http.send("OPTIONS", PATH, &headers, "").await;
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{answer:?}");
    }
    let answer = http.post(&[("Origin", "https://evil.example")], &call(1, "x")).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
    assert_eq!(http.send("OPTIONS", "/nothing", &[], "").await.status, 404);
    assert_eq!(http.send("OPTIONS", PATH, &[], "").await.status, 204);
}

#[tokio::test]
async fn a_refused_method_names_those_that_exist() {
    let http = Http::new(Share::All).await;
    for (method, path, allow) in [
        ("PUT", PATH, "GET, POST, DELETE, OPTIONS"),
        ("PATCH", "/mcp", "GET, POST, DELETE, OPTIONS"),
        // Without a session there is no stream.
        ("GET", PATH, "POST, OPTIONS"),
        ("GET", "/bots/a/containers/b/mcp", "POST, OPTIONS"),
    ] {
        let answer = http.send(method, path, &[], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
    }
}

async fn begin(http: &Http, revision: &str) -> String {
    let mut body = initialize();
    body["params"]["protocolVersion"] = revision.into();
    let begun = http.post(&[], &body).await;
    begun.header("mcp-session-id").unwrap().to_owned()
}

/// Reads from a stream of events until it contains a text.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = String::new();
    let mut bytes = [0; 4096];
    while !read.contains(text) {
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "it ended without {text}: {read}");
        read.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    read
}

#[tokio::test]
async fn a_stream_without_a_last_event_repeats_nothing() {
    let http = Http::new(Share::All).await;
    let session = begin(&http, "2025-06-18").await;
    let own = [("Mcp-Session-Id", session.as_str())];
    let listen = async |last: &str| {
        let mut stream = TcpStream::connect(http.address).await.unwrap();
        let head = format!(
            "GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\
             Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n{last}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let tell = async |of: u64| {
        let body = json!({"jsonrpc": "2.0", "id": of, "method": "tools/call", "params": {"name": "announce", "of": of}});
        assert_eq!(http.post(&own, &body).await.status, 200);
    };
    // What came before anybody listened is delivered once.
    tell(1).await;
    let mut first = listen("").await;
    assert!(until(&mut first, "\"of\":1").await.contains("id: 0-0"));
    drop(first);
    tell(2).await;
    let mut second = listen("").await;
    let read = until(&mut second, "\"of\":2").await;
    assert!(!read.contains("\"of\":1"), "{read}");
    drop(second);
    let mut third = listen("Last-Event-ID: 0-0\r\n").await;
    until(&mut third, "\"of\":2").await;
}

#[tokio::test]
async fn a_batch_is_answered_in_the_revision_that_has_batches() {
    let http = Http::new(Share::All).await;
    let session = begin(&http, "2025-03-26").await;
    let own = [("Mcp-Session-Id", session.as_str())];
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let list = json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"});
    let batch = json!([call(1, "x"), notification, list, call(1, "y"), {"id": 7}, initialize()]);
    let answer = http.post(&own, &batch).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answers = answer.json();
    let answers = answers.as_array().unwrap();
    let of = |id: Value| answers.iter().filter(|a| a["id"] == id).collect::<Vec<_>>();
    assert_eq!(of(json!(1)).len(), 2, "{answers:?}");
    assert_eq!(of(json!(1))[0]["result"]["name"], "x");
    assert_eq!(of(json!(1))[1]["error"]["code"], -32600, "the same id twice");
    assert!(of(json!("l"))[0]["result"]["tools"].is_array());
    assert_eq!(of(json!(7))[0]["error"]["code"], -32600);
    assert_eq!(of(json!(0))[0]["error"]["code"], -32600);
    assert_eq!((answers.len(), http.harness.log.count("tools/call")), (5, 1));
    let recorded = http.audit.0.lock().unwrap().clone();
    assert!(recorded.contains(&"good played tools/call x ok 200".to_owned()), "{recorded:?}");
    assert_eq!(http.post(&own, &json!([notification])).await.status, 202);
    assert_eq!(http.post(&own, &Value::Array(vec![list.clone(); 101])).await.status, 400);
    assert_eq!(http.post(&own, &call(1, "x")).await.status, 200, "its ids are free again");
    for refused in [begin(&http, "2025-06-18").await, String::new()] {
        let answer: Answer = http.post(&[("Mcp-Session-Id", &refused)], &json!([list])).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains("2025-03-26"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_call_that_its_client_cancels_is_answered_as_cancelled() {
    let http = Http::new(Share::All).await;
    let session = begin(&http, "2025-06-18").await;
    let own = [("Mcp-Session-Id", session.as_str())];
    let hang = call(5, "hang");
    let hanging = http.post(&own, &hang);
    let cancel = async {
        http.harness.log.until(|log| log.count("tools/call") == 1).await;
        let params = json!({"requestId": 5});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(http.post(&own, &cancelled).await.status, 202);
    };
    let (answer, ()) = tokio::join!(hanging, cancel);
    assert_eq!(answer.json()["error"]["data"]["kind"], "cancelled", "{answer:?}");
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    let recorded = http.audit.0.lock().unwrap().clone();
    assert!(
        recorded.contains(&"good played tools/call hang cancelled 200".to_owned()),
        "{recorded:?}"
    );
}
