//! Connections that stay open: the usual call, and what must not pass for one.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tests::{Http, call, initialize};
use crate::Share;

const PATH: &str = "/servers/played/mcp";

/// An open connection.
struct Open {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Open {
    async fn new(http: &Http) -> Self {
        Self { stream: TcpStream::connect(http.address).await.unwrap(), read: Vec::new() }
    }

    fn request(headers: &[(&str, &str)], body: &str) -> String {
        let mut head = format!(
            "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        );
        if !headers.iter().any(|(name, _)| *name == "Authorization") {
            head += "Authorization: Bearer good\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    async fn post(&mut self, headers: &[(&str, &str)], body: &Value) -> (u16, String, String) {
        let request = Self::request(headers, &body.to_string());
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer().await
    }

    /// Reads one response: its status, head and body.
    async fn answer(&mut self) -> (u16, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        loop {
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            if let Some(end) = end {
                let head = text(&self.read[..end]).to_lowercase();
                let length = head.split("content-length: ").nth(1);
                let length =
                    length.map(|rest| rest.lines().next().unwrap().parse::<usize>().unwrap());
                let chunks = self.read[end..].windows(5).position(|five| five == b"0\r\n\r\n");
                let whole = match length {
                    Some(length) => Some(end + length),
                    None => chunks.map(|at| end + at + 5),
                };
                if let Some(whole) = whole.filter(|whole| self.read.len() >= *whole) {
                    let body = text(&self.read[end..whole]);
                    self.read.drain(..whole);
                    return (head[9..12].parse().unwrap(), head, body);
                }
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "closed after {}", text(&self.read));
            self.read.extend_from_slice(&bytes[..count]);
        }
    }

    /// Reads until a text is there.
    async fn until(&mut self, text: &str) {
        while memchr::memmem::find(&self.read, text.as_bytes()).is_none() {
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "closed without {text}");
            self.read.extend_from_slice(&bytes[..count]);
        }
    }

    /// Everything that comes before the server closes the connection. If it has not read all of the request, the
    /// connection is reset.
    async fn until_closed(&mut self) -> &[u8] {
        let _ = self.stream.read_to_end(&mut self.read).await;
        &self.read
    }

    async fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0; 64]).await.is_ok_and(|count| count == 0)
    }
}

fn plain(id: u64, name: &str) -> Value {
    let params = json!({"name": name, "arguments": {"of": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn stateless(id: u64, name: &str) -> Value {
    let mut body = plain(id, name);
    body["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    body
}

const STATELESS: [(&str, &str); 3] =
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "x")];

#[tokio::test]
async fn one_connection_serves_requests_of_every_kind() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let (status, head, _) = open.post(&[], &initialize()).await;
    assert_eq!(status, 200);
    let session = head.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let own = [("Mcp-Session-Id", session.as_str())];
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(open.post(&own, &told).await.0, 202);
    for id in 1..4 {
        let (status, head, body) = open.post(&own, &plain(id, "x")).await;
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &answer["id"]), (200, &json!(id)), "{head}");
        assert_eq!(answer["result"]["arguments"]["of"], id);
        assert!(head.contains("date: ") && head.contains("content-type: application/json"));
        let (_, head, body) = open.post(&own, &call(id + 10, "progress")).await;
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        assert!(body.contains("progressToken") && body.contains("\"done\":true"), "{body}");
        let (status, _, body) = open.post(&STATELESS, &stateless(id, "x")).await;
        assert_eq!(status, 200);
        assert!(body.contains("\"resultType\":\"complete\""), "{body}");
    }
    // Two requests in one piece are answered in their order.
    let both = [plain(7, "x"), plain(8, "x")].map(|body| Open::request(&own, &body.to_string()));
    open.stream.write_all(both.concat().as_bytes()).await.unwrap();
    for id in [7, 8] {
        assert!(open.answer().await.2.contains(&format!("\"id\":{id}")));
    }
    // Byte by byte.
    for byte in Open::request(&own, &plain(9, "x").to_string()).as_bytes() {
        open.stream.write_all(&[*byte]).await.unwrap();
    }
    assert!(open.answer().await.2.contains("\"id\":9"));
    let closed = [own[0], ("Connection", "close")];
    assert!(open.post(&closed, &plain(10, "x")).await.1.contains("connection: close"));
    assert!(open.is_closed().await);
    let recorded = http.audit.0.lock().unwrap().clone();
    assert_eq!(recorded.iter().filter(|l| *l == "good played tools/call x ok 200").count(), 10);
}

#[tokio::test]
async fn each_request_of_a_connection_goes_to_the_server_in_its_path() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    for (path, expected) in [
        (PATH, 200),
        ("/servers/other/mcp", 404),
        (PATH, 200),
        ("/servers/playe/mcp", 404),
        ("/servers/playe%64/mcp", 200),
        ("/healthz", 405),
        (PATH, 200),
    ] {
        let request = Open::request(&STATELESS, &stateless(1, "x").to_string());
        let request = request.replace(PATH, path);
        open.stream.write_all(request.as_bytes()).await.unwrap();
        let (status, head, body) = open.answer().await;
        assert_eq!(status, expected, "{path}: {head}{body}");
    }
    assert_eq!(http.harness.log.count("tools/call"), 4);
}

#[tokio::test]
async fn the_usual_call_is_answered_as_any_other() {
    let http = Http::new(Share::All).await;
    for (headers, body) in [
        (STATELESS.to_vec(), stateless(1, "x")),
        (vec![STATELESS[0], STATELESS[1]], stateless(2, "x")),
        (vec![STATELESS[0], ("Mcp-Method", "tools/list"), STATELESS[2]], stateless(3, "x")),
        (vec![("Mcp-Session-Id", "made-up")], plain(4, "x")),
        ([&STATELESS[..], &[("Mcp-Session-Id", "made-up")]].concat(), stateless(9, "x")),
        (vec![("MCP-Protocol-Version", "1999-01-01")], plain(5, "x")),
        (vec![("Authorization", "Bearer wrong")], plain(6, "x")),
        (vec![("Authorization", "Bearer narrow")], plain(7, "x")),
        (vec![("Authorization", "Bearer looker")], plain(8, "x")),
    ] {
        let mut open = Open::new(&http).await;
        // The second time, the connection knows its caller.
        let first = open.post(&headers, &body).await;
        let second = open.post(&headers, &body).await;
        // hyper reads a body in chunks.
        let text = body.to_string();
        let request = Open::request(&headers, &text);
        let request = request.split("Content-Length").next().unwrap();
        let chunked = format!(
            "{request}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n0\r\n\r\n",
            text.len()
        );
        let mut general = Open::new(&http).await;
        general.stream.write_all(chunked.as_bytes()).await.unwrap();
        let general = general.answer().await;
        assert_eq!((first.0, &first.2), (general.0, &general.2), "{headers:?} {body}");
        assert_eq!((second.0, &second.2), (general.0, &general.2), "{headers:?} {body}");
    }
}

/// A usual call that wants to know about its progress.
fn watched(id: u64, name: &str) -> Value {
    let mut body = plain(id, name);
    body["params"]["_meta"] = json!({"progressToken": "t"});
    body
}

#[tokio::test]
async fn a_usual_call_is_answered_as_events_that_a_client_can_read_again() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let head = open.post(&[], &initialize()).await.1;
    let session = head.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let own = [("Mcp-Session-Id", session.as_str())];
    for (number, id) in [(1, 7), (2, 8)] {
        let (status, head, body) = open.post(&own, &watched(id, "progress")).await;
        assert!(status == 200 && head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("content-length: "), "not the fast path: {head}");
        let events: Vec<_> = body.trim_end().split("\n\n").collect();
        let [first, last] = events[..] else { panic!("{body}") };
        let first = first.strip_prefix(&format!("id: {number}-0\ndata: ")).expect(first);
        let last = last.strip_prefix(&format!("id: {number}-1\ndata: ")).expect(last);
        let [first, last] = [first, last].map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(first["params"], json!({"progressToken": "t", "progress": 1}));
        assert_eq!((&last["id"], &last["result"]), (&json!(id), &json!({"done": true})));
        let after = format!("{number}-0");
        let again = [own[0], ("Last-Event-ID", after.as_str())];
        let again = http.send("GET", PATH, &again, "").await.body;
        assert!(again.contains("\"done\":true") && !again.contains("progressToken"), "{again}");
    }
    let recorded = http.audit.0.lock().unwrap().clone();
    let expected = "good played tools/call progress ok 200";
    assert_eq!(recorded.iter().filter(|line| *line == expected).count(), 2, "{recorded:?}");
    let mut named = stateless(9, "progress");
    named["params"]["_meta"]["progressToken"] = json!(5);
    let headers = [STATELESS[0], STATELESS[1], ("Mcp-Name", "progress")];
    let (_, head, body) = open.post(&headers, &named).await;
    assert!(head.contains("text/event-stream") && body.starts_with("id: 0-0\n"), "{head}{body}");
    assert!(body.contains("\"progressToken\":5") && body.contains("\"id\":9"), "{body}");
    assert!(body.contains("\"resultType\":\"complete\""), "{body}");
}

#[tokio::test]
async fn a_call_outlives_its_connection_once_it_is_answered_as_events() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let head = open.post(&[], &initialize()).await.1;
    let session = head.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let own = [("Mcp-Session-Id", session.as_str())];
    let request = Open::request(&own, &watched(2, "later").to_string());
    open.stream.write_all(request.as_bytes()).await.unwrap();
    open.until("progressToken").await;
    drop(open);
    // The server answers after the next message.
    assert_eq!(Open::new(&http).await.post(&own, &plain(3, "x")).await.0, 200);
    let resume = [own[0], ("Last-Event-ID", "1-0")];
    let rest = http.send("GET", PATH, &resume, "").await.body;
    assert!(rest.contains("id: 1-1") && rest.contains("\"done\":true"), "{rest}");
    assert_eq!(http.harness.log.count("notifications/cancelled"), 0);
    // Without a session nobody can ask for it again.
    let mut named = stateless(4, "later");
    named["params"]["_meta"]["progressToken"] = json!(5);
    let headers = [STATELESS[0], STATELESS[1], ("Mcp-Name", "later")];
    let mut open = Open::new(&http).await;
    let request = Open::request(&headers, &named.to_string());
    open.stream.write_all(request.as_bytes()).await.unwrap();
    open.until("progressToken").await;
    drop(open);
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused_and_its_client_reads_why() {
    let http = Http::new(Share::All).await;
    let many = "A: b\r\n".repeat(101);
    let long = format!("A: {}\r\n", "b".repeat(16 << 10));
    for headers in [many, long] {
        let mut open = Open::new(&http).await;
        // More than the server reads before it answers.
        let rest = "x".repeat(100 << 10);
        let text = format!(
            "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\
             Transfer-Encoding: chunked\r\n{headers}\r\n{rest}"
        );
        open.stream.write_all(text.as_bytes()).await.unwrap();
        let (status, head, body) = open.answer().await;
        assert_eq!(status, 431, "{head}{body}");
        assert!(head.contains("connection: close") && body.contains("16 KiB"), "{head}{body}");
        assert!(open.is_closed().await);
    }
}

#[tokio::test]
async fn a_body_with_two_lengths_is_refused_and_nothing_after_it_is_read() {
    let http = Http::new(Share::All).await;
    let hidden = Open::request(&[], &plain(1, "x").to_string());
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 0x5",
    ] {
        for before in [0, 1] {
            let mut open = Open::new(&http).await;
            for _ in 0..before {
                assert_eq!(
                    open.post(&[("Mcp-Session-Id", "made-up")], &plain(1, "x")).await.0,
                    404
                );
            }
            let head = format!(
                "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\
                 Content-Type: application/json\r\n{lengths}\r\n\r\n0\r\n\r\n{hidden}"
            );
            open.stream.write_all(head.as_bytes()).await.unwrap();
            let (status, head, body) = open.answer().await;
            assert_eq!(status, 400, "{lengths}: {head}{body}");
            assert!(
                head.contains("connection: close") && body.contains("Content-Length"),
                "{head}"
            );
            assert_eq!(open.until_closed().await, b"", "{lengths}");
        }
    }
    assert_eq!(http.harness.log.count("tools/call"), 0);
}

#[tokio::test]
async fn an_open_connection_notices_that_its_token_was_revoked() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let token = ("Authorization", "Bearer other");
    let headers = [token, STATELESS[0], STATELESS[1], STATELESS[2]];
    assert_eq!(open.post(&headers, &stateless(1, "x")).await.0, 200);
    assert_eq!(open.post(&headers, &stateless(2, "x")).await.0, 200);
    let hang = [token, STATELESS[0], STATELESS[1], ("Mcp-Name", "hang")];
    let revoke = async {
        http.harness.log.until(|log| log.count("tools/call") == 3).await;
        http.tokens.revoke("other");
    };
    let body = stateless(3, "hang");
    let ((_, _, body), ()) = tokio::join!(open.post(&hang, &body), revoke);
    assert!(body.contains("the token was revoked"), "{body}");
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    assert_eq!(open.post(&headers, &stateless(4, "x")).await.0, 401);
    assert_eq!(http.harness.log.count("tools/call"), 3);
}

#[tokio::test]
async fn an_open_connection_notices_that_its_token_expired() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let headers = [("Authorization", "Bearer brief"), STATELESS[0], STATELESS[1], STATELESS[2]];
    assert_eq!(open.post(&headers, &stateless(1, "x")).await.0, 200);
    assert_eq!(open.post(&headers, &stateless(2, "x")).await.0, 200);
    http.tokens.now.store(1, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(open.post(&headers, &stateless(3, "x")).await.0, 401);
}

#[tokio::test]
async fn an_open_connection_notices_that_its_session_ended() {
    let http = Http::new(Share::All).await;
    let mut open = Open::new(&http).await;
    let head = open.post(&[], &initialize()).await.1;
    let session = head.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let own = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(open.post(&own, &plain(1, "x")).await.0, 200);
    assert_eq!(http.send("DELETE", PATH, &own, "").await.status, 204);
    assert_eq!(open.post(&own, &plain(2, "x")).await.0, 404);
    let mut late = Open::new(&http).await;
    late.stream
        .write_all(Open::request(&[], &plain(3, "hang").to_string()).as_bytes())
        .await
        .unwrap();
    http.harness.log.until(|log| log.count("tools/call") == 2).await;
    drop(late);
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
}
