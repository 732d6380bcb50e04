//! The endpoints over raw HTTP on a socket.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use patterm_wire::{Id, Message};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    AuditLog, AuditRecord, Authenticator, EndpointLimits, HttpConfig, McpPeer, NativeTools,
    PendingResponse, Principal, Scope, serve,
};
use crate::tests::Harness;
use crate::{GatewayError, Notification, ServerLimits, Share};

/// Tokens that are their own names, and those that were revoked.
pub(super) struct Tokens {
    gone: Mutex<HashSet<String>>,
    revoked: broadcast::Sender<String>,
    generation: AtomicU64,
    /// Times up to this one have passed.
    pub(super) now: AtomicU64,
}

impl Tokens {
    pub(super) fn revoke(&self, name: &str) {
        self.gone.lock().unwrap().insert(name.to_owned());
        self.generation.fetch_add(1, Ordering::Release);
        let _ = self.revoked.send(name.to_owned());
    }
}

impl Authenticator for Tokens {
    fn authenticate(&self, token: &str) -> Option<Principal> {
        let all = Scope::default();
        let scope = match token {
            "good" | "other" | "brief" => all,
            "narrow" => Scope { servers: Some(vec!["patterm".to_owned()]), ..all },
            "reader" => Scope { read_only: true, ..all },
            "looker" => Scope { tools: Some(vec!["lo*".to_owned()]), ..all },
            _ => return None,
        };
        let expires_at = (token == "brief").then_some(1);
        self.is_valid(token).then(|| Principal { name: token.into(), scope, expires_at })
    }

    fn generation(&self) -> Option<u64> {
        Some(self.generation.load(Ordering::Acquire))
    }

    fn is_past(&self, expires_at: u64) -> bool {
        self.now.load(Ordering::Relaxed) >= expires_at
    }

    fn is_valid(&self, name: &str) -> bool {
        let expired = name == "brief" && self.is_past(1);
        !expired && !self.gone.lock().unwrap().contains(name)
    }

    fn revocations(&self) -> broadcast::Receiver<String> {
        self.revoked.subscribe()
    }
}

/// The lines of the audit log.
#[derive(Default)]
pub(super) struct Audit(pub(super) Mutex<Vec<String>>);

impl AuditLog for Audit {
    fn wants_arguments(&self) -> bool {
        false
    }

    fn record(&self, record: &AuditRecord<'_>) {
        assert_eq!(record.arguments, None);
        let AuditRecord { who, server, method, tool, outcome, status, .. } = record;
        let [who, method, tool] = [who, method, tool].map(|text| text.unwrap_or("-"));
        let status = status.unwrap_or_default();
        let line = format!("{who} {server} {method} {tool} {} {status}", outcome.as_str());
        self.0.lock().unwrap().push(line);
    }
}

/// Patterm's own tools: they answer with their method.
struct Echo;

impl NativeTools for Echo {
    fn connect(
        &self,
        _: &Principal,
    ) -> Result<(Arc<dyn McpPeer>, mpsc::Receiver<Notification>), GatewayError> {
        Ok((Arc::new(Self), mpsc::channel(1).1))
    }
}

impl McpPeer for Echo {
    fn request<'a>(&'a self, id: &'a Id, method: &'a str, _: String) -> PendingResponse<'a> {
        let answer = json!({"jsonrpc": "2.0", "id": id.as_json(), "result": method});
        Box::pin(std::future::ready(Ok(answer.to_string().into_bytes())))
    }

    fn notify(&self, _: &Message<'_>, _: &str) {}
}

pub(super) struct Http {
    pub(super) address: std::net::SocketAddr,
    pub(super) harness: Harness,
    pub(super) tokens: Arc<Tokens>,
    pub(super) audit: Arc<Audit>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    }
}

impl Http {
    pub(super) async fn new(share: Share) -> Self {
        Self::with(share, EndpointLimits { body_bytes: 1 << 20, ..EndpointLimits::default() }).await
    }

    pub(super) async fn with(share: Share, limits: EndpointLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let harness = Harness::new(share, ServerLimits::default());
        let (gone, revoked) = (Mutex::default(), broadcast::Sender::new(8));
        let (tokens, audit) = (
            Arc::new(Tokens {
                gone,
                revoked,
                generation: AtomicU64::new(0),
                now: AtomicU64::new(0),
            }),
            Arc::<Audit>::default(),
        );
        let config = HttpConfig {
            gateway: harness.gateway.clone(),
            native_tools: Arc::new(Echo),
            authenticator: tokens.clone(),
            audit: Some(audit.clone()),
            limits,
            hosts: Vec::new(),
            origins: vec!["https://app.example".to_owned()],
            bots: None,
        };
        tokio::spawn(serve(listener, config, CancellationToken::new()));
        Self { address, harness, tokens, audit }
    }

    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        for (name, value) in [
            ("Host", "localhost"),
            ("Authorization", "Bearer good"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ] {
            if !has(name) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(super) async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", "/servers/played/mcp", headers, &body.to_string()).await
    }
}

pub(super) fn call(id: u64, name: &str) -> Value {
    let params = json!({"name": name, "of": id, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(super) fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[tokio::test]
async fn refused_requests_reach_no_server() {
    let http = Http::new(Share::All).await;
    let body = call(1, "x");
    for (status, headers) in [
        (401, vec![("Authorization", "")]),
        (401, vec![("Authorization", "Bearer wrong")]),
        (401, vec![("Authorization", "good")]),
        (403, vec![("Host", "evil.example")]),
        (403, vec![("Origin", "http://evil.example")]),
        (403, vec![("Origin", "null")]),
        (403, vec![("Authorization", "Bearer narrow")]),
        (404, vec![("Mcp-Session-Id", "made-up")]),
        (415, vec![("Content-Type", "text/plain")]),
        (400, vec![("MCP-Protocol-Version", "1999-01-01")]),
        (400, vec![("MCP-Protocol-Version", "2026-07-28")]),
    ] {
        let answer = http.post(&headers, &body).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    }
    let long = "x".repeat(2 << 20);
    assert_eq!(http.post(&[], &json!(long)).await.status, 413);
    assert_eq!(http.send("PUT", "/servers/played/mcp", &[], "").await.status, 405);
    assert_eq!(http.send("POST", "/servers/nobody/mcp", &[], &body.to_string()).await.status, 404);
    for (status, bad) in [(400, "nonsense"), (400, "[]"), (400, "{}"), (400, "[1,2]")] {
        let answer = http.send("POST", "/servers/played/mcp", &[], bad).await;
        assert_eq!(answer.status, status, "{bad}: {answer:?}");
    }
    assert_eq!(http.harness.log.count("tools/call"), 0);
    assert_eq!(http.send("GET", "/healthz", &[("Authorization", "")], "").await.status, 200);
    assert_eq!(http.send("GET", "/metrics", &[("Authorization", "")], "").await.status, 401);
}

#[tokio::test]
async fn an_older_client_begins_uses_and_ends_a_session() {
    let http = Http::new(Share::All).await;
    let begun = http.post(&[], &initialize()).await;
    assert_eq!(begun.json()["result"]["protocolVersion"], "2025-06-18");
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session.len(), 32);
    let own = [("Mcp-Session-Id", session.as_str())];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(http.post(&own, &initialized).await.status, 202);
    assert_eq!(http.post(&own, &call(1, "x")).await.json()["result"]["of"], 1);
    // Messages before the response make it a stream.
    let stream = http.post(&own, &call(2, "progress")).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let notification = stream.body.find(r#""progressToken":"t""#).unwrap();
    let done = stream.body.find(r#""done":true"#).unwrap();
    assert!(notification < done && stream.body.contains("id: 1-1"), "{stream:?}");
    // It can be resumed after its first event.
    let resume = [own[0], ("Last-Event-ID", "1-0")];
    let again = http.send("GET", "/servers/played/mcp", &resume, "").await;
    assert!(again.body.contains(r#""done":true"#) && !again.body.contains("progressToken"));
    let foreign = [own[0], ("Authorization", "Bearer other")];
    assert_eq!(http.post(&foreign, &call(3, "x")).await.status, 404);
    assert_eq!(http.send("DELETE", "/servers/played/mcp", &own, "").await.status, 204);
    assert_eq!(http.post(&own, &call(4, "x")).await.status, 404);
}

#[tokio::test]
async fn a_stateless_client_needs_no_session_and_its_headers_are_checked() {
    let http = Http::new(Share::All).await;
    let mut body = call(1, "x");
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let good = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "x")];
    let answer = http.post(&good, &body).await;
    assert_eq!(answer.json()["result"]["resultType"], "complete", "{answer:?}");
    let coded = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?eA==?=")];
    assert_eq!(http.post(&coded, &body).await.status, 200);
    for bad in [
        vec![version],
        vec![version, ("Mcp-Method", "tools/list"), ("Mcp-Name", "x")],
        vec![version, ("Mcp-Method", "tools/call")],
        vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "y")],
        vec![("Mcp-Method", "tools/call"), ("Mcp-Name", "x")],
    ] {
        let answer = http.post(&bad, &body).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (400, &json!(-32020)),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn disconnecting_cancels_the_call() {
    let http = Http::new(Share::All).await;
    let body = call(1, "hang").to_string();
    let mut stream = TcpStream::connect(http.address).await.unwrap();
    let head = format!(
        "POST /servers/played/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    http.harness.log.until(|log| log.count("tools/call") == 1).await;
    drop(stream);
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn each_session_may_have_its_own_instance() {
    let http = Http::new(Share::Session).await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let begun = http.post(&[], &initialize()).await;
        sessions.push(begun.header("mcp-session-id").unwrap().to_owned());
    }
    assert_eq!(http.harness.log.count("initialize"), 2);
    let servers = http.send("GET", "/servers", &[], "").await.json();
    assert_eq!(servers["servers"].as_array().unwrap().len(), 2, "{servers}");
    let metrics = http.send("GET", "/metrics", &[], "").await;
    assert!(metrics.body.contains("patterm_server_running{server=\"played\"} 2"), "{metrics:?}");
}

#[tokio::test]
async fn patterms_own_tools_are_served_too() {
    let http = Http::new(Share::All).await;
    let body = call(1, "x").to_string();
    let answer = http.send("POST", "/mcp", &[("Authorization", "Bearer narrow")], &body).await;
    assert_eq!(answer.json()["result"], "tools/call");
}

#[tokio::test]
async fn paths_without_a_handler_are_404_and_monitoring_is_read_only() {
    let http = Http::new(Share::All).await;
    for (method, path, status) in [
        ("HEAD", "/healthz", 200),
        ("POST", "/healthz", 405),
        ("DELETE", "/servers", 405),
        ("POST", "/metrics", 405),
        ("HEAD", "/metrics", 200),
        ("GET", "/", 404),
        ("GET", "/mcp/", 404),
        ("POST", "/servers/played/mcp/more", 404),
        ("POST", "/bots", 400),
    ] {
        let answer = http.send(method, path, &[], "{}").await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        if method == "HEAD" || status == 404 || status == 405 {
            assert_eq!(answer.body, "", "{method} {path}");
        }
        let allow = (status == 405).then_some("GET, HEAD, OPTIONS");
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
    // A name may be percent-encoded.
    let body = call(1, "x").to_string();
    assert_eq!(http.send("POST", "/servers/pl%61yed/mcp", &[], &body).await.status, 200);
    let unknown = http.send("POST", "/servers/%FF/mcp", &[], &body).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
}
