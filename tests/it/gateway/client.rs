//! An HTTP client that sends exactly what a test specifies, byte for byte, and reads the response.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::harness::{Harness, PATIENCE};

/// A client, with its session if it has one.
#[derive(Clone)]
pub(super) struct Client {
    address: SocketAddr,
    pub(super) token: String,
    pub(super) session: Option<String>,
}

/// The metadata of every stateless request.
pub(super) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request without metadata.
pub(super) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A tool call.
pub(super) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

impl Client {
    /// The path of the harness's only server.
    pub(super) const PATH: &str = "/servers/everything/mcp";

    /// A client without a session.
    pub(super) fn of(harness: &Harness) -> Self {
        Self { address: harness.address, token: harness.tokens[0].clone(), session: None }
    }

    /// A client of an older revision, after its handshake.
    #[track_caller]
    pub(super) fn greeted(harness: &Harness) -> Self {
        Self::greeted_with(harness, &harness.tokens[0], json!({}))
    }

    /// The same with these capabilities.
    #[track_caller]
    pub(super) fn greeted_with(harness: &Harness, token: &str, capabilities: Value) -> Self {
        let mut client = Self { token: token.to_owned(), ..Self::of(harness) };
        let info = json!({"name": "tests", "version": "0"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
        let reply = client.post(&request("greeting", "initialize", params));
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["id"], "greeting", "{reply:?}");
        client.session = reply.header("mcp-session-id").map(str::to_owned);
        let told = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!((told.status, told.body.as_str()), (202, ""), "{told:?}");
        client
    }

    /// Posts a message and reads the whole response.
    #[track_caller]
    pub(super) fn post(&self, message: &Value) -> Reply {
        self.post_with(message, &[])
    }

    /// Posts with these additional or replaced headers; an empty value removes one.
    #[track_caller]
    pub(super) fn post_with(&self, message: &Value, headers: &[(&str, &str)]) -> Reply {
        self.begin_with(message, headers).rest()
    }

    /// Posts a stateless request.
    #[track_caller]
    pub(super) fn post_modern(&self, message: &Value) -> Reply {
        self.begin_modern(message).rest()
    }

    /// Posts a stateless request and reads only the head of the response.
    #[track_caller]
    pub(super) fn begin_modern(&self, message: &Value) -> Exchange {
        let mut message = message.clone();
        let own = message["params"]["_meta"].take();
        let mut meta = meta();
        for (name, value) in own.as_object().into_iter().flatten() {
            meta[name] = value.clone();
        }
        message["params"]["_meta"] = meta;
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let name = ["name", "uri"].iter().find_map(|name| message["params"][name].as_str());
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", &method),
            ("Mcp-Name", name.unwrap_or_default()),
        ];
        self.begin_with(&message, &headers)
    }

    /// Posts a message without waiting for the response.
    pub(super) fn send(&self, message: &Value) -> TcpStream {
        self.send_text("POST", Self::PATH, &[], &message.to_string())
    }

    #[track_caller]
    pub(super) fn begin_with(&self, message: &Value, headers: &[(&str, &str)]) -> Exchange {
        let stream = self.send_text("POST", Self::PATH, headers, &message.to_string());
        Exchange::of(stream)
    }

    /// Sends a GET request.
    #[track_caller]
    pub(super) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        Exchange::of(self.send_text("GET", path, headers, "")).rest()
    }

    /// Opens the stream for server messages that belong to no request.
    #[track_caller]
    pub(super) fn listen(&self, headers: &[(&str, &str)]) -> Exchange {
        Exchange::of(self.send_text("GET", Self::PATH, headers, ""))
    }

    /// Ends the session.
    #[track_caller]
    pub(super) fn delete(&self) -> Reply {
        Exchange::of(self.send_text("DELETE", Self::PATH, &[], "")).rest()
    }

    /// Sends a request of any kind.
    pub(super) fn send_text(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let authorization = format!("Bearer {}", self.token);
        let length = body.len().to_string();
        for (name, value) in [
            ("Host", "localhost"),
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Session-Id", self.session.as_deref().unwrap_or_default()),
            ("Content-Length", &length),
        ] {
            if !has(name) && !value.is_empty() {
                head += &format!("{name}: {value}\r\n");
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("\r\n{body}");
        // If a request is refused early, nobody may read the rest.
        let _ = stream.write_all(head.as_bytes());
        stream
    }
}

/// A response whose head was read.
pub(super) struct Exchange {
    pub(super) status: u16,
    head: Vec<String>,
    rest: BufReader<TcpStream>,
}

impl Exchange {
    /// Waits for the head of a response.
    #[track_caller]
    pub(super) fn of(stream: TcpStream) -> Self {
        let mut rest = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            rest.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            head.push(line.to_owned());
        }
        let status = head.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        Self { status: status.unwrap_or_default(), head, rest }
    }

    /// The next event of a stream, with its id; `None` at the end.
    #[track_caller]
    pub(super) fn event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            if self.rest.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.trim_end().to_owned();
            }
            // Every event is a separate chunk, with lines for the chunk sizes in between.
            if let Some(text) = line.strip_prefix("data: ") {
                assert!(!text.contains('\r'), "it would end the event: {text:?}");
                return Some((id, serde_json::from_str(text).unwrap()));
            }
        }
    }

    /// Reads the rest.
    #[track_caller]
    pub(super) fn rest(mut self) -> Reply {
        let head = std::mem::take(&mut self.head);
        let mut reply =
            Reply { status: self.status, head, body: String::new(), events: Vec::new() };
        if reply.header("content-type") == Some("text/event-stream") {
            while let Some((_, event)) = self.event() {
                reply.events.push(event);
            }
        } else {
            self.rest.read_to_string(&mut reply.body).unwrap();
        }
        reply
    }
}

/// A complete response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    head: Vec<String>,
    pub(super) body: String,
    /// The messages of an event stream.
    pub(super) events: Vec<Value>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.iter().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The response message: the body, or the last event.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        match self.events.last() {
            Some(last) => last.clone(),
            None => serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}")),
        }
    }
}
