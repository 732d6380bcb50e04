//! Remote servers: our own endpoint as a stateless one, and a hand-written one of the older era.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use patterm_wire::Id;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::tests::{Http, call};
use crate::backend::remote::Remote;
use crate::{
    Caller, ClientHandle, Gateway, Notification, ServerLimits, ServerSpec, Share, ToolPatterns,
};

/// A gateway with one remote server, and a client of it.
fn remote(
    url: String,
    token: &str,
) -> (Gateway, ClientHandle, tokio::sync::mpsc::Receiver<Notification>) {
    let headers = BTreeMap::from([("Authorization".to_owned(), format!("Bearer {token}"))]);
    let backend = Remote { url, headers };
    assert!(!format!("{backend:?}").contains("Bearer"), "a token is in no log");
    let spec = ServerSpec {
        backend: Arc::new(backend),
        fingerprint: String::new(),
        share: Share::All,
        limits: ServerLimits::default(),
        roots: "[]".into(),
        tools: ToolPatterns::default(),
    };
    let gateway = Gateway::default();
    gateway.configure(BTreeMap::from([("far".to_owned(), spec)]));
    let caller = Caller { name: "a".into(), session: "1".into() };
    let (client, notifications) = gateway.connect("far", &caller).unwrap();
    (gateway, client, notifications)
}

async fn request(client: &ClientHandle, name: &str) -> Value {
    let text = call(7, name).to_string();
    let answer = client.request(&Id::from_number(7), "tools/call", text).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

#[tokio::test]
async fn a_remote_server_is_used_like_a_local_one() {
    let http = Http::new(Share::All).await;
    let url = format!("http://{}/servers/played/mcp", http.address);
    let (gateway, client, mut notifications) = remote(url, "good");
    assert_eq!(request(&client, "x").await["result"]["of"], 7);
    assert_eq!(request(&client, "progress").await["result"]["done"], true);
    assert!(notifications.try_recv().unwrap().text.contains("\"progressToken\":\"t\""));
    // A cancelled call closes its request, and that reaches the server.
    let (hang, id) = (call(8, "hang").to_string(), Id::from_number(8));
    let request = client.request(&id, "tools/call", hang);
    let arrived = http.harness.log.until(|log| log.count("tools/call") == 3);
    tokio::select! {
        answer = request => panic!("{answer:?}"),
        () = arrived => {}
    }
    http.harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    gateway.end().await;
}

#[tokio::test]
async fn errors_name_their_cause() {
    let http = Http::new(Share::All).await;
    let (_gateway, client, _) = remote(format!("http://{}/servers/played/mcp", http.address), "no");
    let message = request(&client, "x").await["error"]["message"].to_string();
    assert!(message.contains("401") && message.contains("`headers`"), "{message}");
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (_gateway, client, _) = remote(format!("http://{gone}/mcp"), "x");
    let message = request(&client, "x").await["error"]["message"].to_string();
    assert!(message.contains(&format!("{gone} cannot be reached")), "{message}");
    let (_gateway, client, _) = remote("ftp://x".into(), "x");
    let error = client.request(&Id::from_number(1), "ping", String::new()).await.unwrap_err();
    assert!(error.message.contains("neither https:// nor http://"), "{error}");
}

/// A server of the older era: the heads of the requests it received.
#[derive(Default)]
struct LegacyServer {
    heads: Mutex<Vec<String>>,
    wake: Notify,
}

impl LegacyServer {
    async fn until(&self, what: &str) {
        loop {
            let woken = self.wake.notified();
            if self.heads.lock().unwrap().iter().any(|head| head.starts_with(what)) {
                return;
            }
            woken.await;
        }
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let (head, body) = loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap_or(0);
            bytes.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let whole = text.split_once("\r\n\r\n").filter(|(head, body)| {
                let lower = head.to_lowercase();
                let length = lower.split("content-length: ").nth(1);
                let length = length.and_then(|l| l.split("\r\n").next()?.parse().ok());
                body.len() >= length.unwrap_or(0)
            });
            if let Some((head, body)) = whole {
                break (head.to_lowercase(), body.to_owned());
            }
            if read == 0 {
                return;
            }
        };
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        let name = message["params"]["name"].as_str().unwrap_or_default();
        let http = head.split(' ').next().unwrap_or_default();
        self.heads.lock().unwrap().push(format!("{http} {method} {name}\n{head}"));
        self.wake.notify_waiters();
        let events = "content-type: text/event-stream\r\n";
        let result = |value: Value| {
            json!({"jsonrpc": "2.0", "id": message["id"], "result": value}).to_string()
        };
        let (status, headers, body) = match (http, method, name) {
            ("post", "server/discover", _) => {
                let error = json!({"code": -32601, "message": "what?"});
                let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                (400, "content-type: application/json\r\n".to_owned(), body.to_string())
            }
            ("post", "initialize", _) => {
                let body = result(json!({"protocolVersion": "2025-06-18"}));
                let body = body.replace(',', ",\ndata: ");
                (200, format!("{events}mcp-session-id: s1\r\n"), format!("data: {body}\n\n"))
            }
            // A response that breaks off after its first event, and can be resumed.
            ("post", "tools/call", "x") => {
                *RESULT.lock().unwrap() = result(json!({"late": true}));
                (
                    200,
                    events.into(),
                    "id: 5-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n".into(),
                )
            }
            ("get", ..) if head.contains("last-event-id: 5-1") => {
                (200, events.into(), format!("data: {}\n\n", RESULT.lock().unwrap()))
            }
            ("get", ..) => (405, String::new(), String::new()),
            ("post", "tools/call", _) => (404, String::new(), String::new()),
            _ => (202, String::new(), String::new()),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

static RESULT: Mutex<String> = Mutex::new(String::new());

#[tokio::test]
async fn an_older_remote_server_gets_a_session_a_stream_and_a_delete() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = Arc::<LegacyServer>::default();
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serving.clone().serve(stream));
        }
    });
    let (gateway, client, _told) = remote(url, "key");
    assert_eq!(request(&client, "x").await["result"]["late"], true);
    {
        let heads = server.heads.lock().unwrap();
        let call = heads.iter().find(|head| head.starts_with("post tools/call x")).unwrap();
        for header in
            ["mcp-session-id: s1", "mcp-protocol-version: 2025-06-18", "authorization: bearer key"]
        {
            assert!(call.contains(header), "{header}: {call}");
        }
        let order: Vec<_> =
            heads.iter().map(|h| h.split('\n').next().unwrap()).filter(|h| h.len() > 5).collect();
        let initialized = order.iter().position(|h| h.contains("notifications/initialized"));
        let called = order.iter().position(|h| h.contains("tools/call"));
        assert!(initialized.unwrap() < called.unwrap(), "{order:?}");
    }
    server.until("get").await;
    // It drops the session: that call fails, and the next one begins another session.
    let gone = call(9, "forgotten").to_string();
    let answer = client.request(&Id::from_number(9), "tools/call", gone).await;
    let message_text = answer.map(|body| String::from_utf8_lossy(&body).into_owned());
    assert!(format!("{message_text:?}").contains("dropped the session"), "{message_text:?}");
    gateway.end().await;
    let (gateway, client, _told) = {
        let port = server.heads.lock().unwrap()[0].split("host: ").nth(1).unwrap().to_owned();
        remote(format!("http://{}/mcp", port.split("\r\n").next().unwrap()), "key")
    };
    assert_eq!(request(&client, "x").await["result"]["late"], true);
    gateway.end().await;
    server.until("delete").await;
}
