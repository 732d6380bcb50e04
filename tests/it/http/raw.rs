//! A raw HTTP client: it sends exactly what a test specifies and corrects nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A client of the endpoint.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

/// A response.
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

    pub(super) fn header(&self, name: &str) -> Option<String> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

impl Client {
    pub(super) fn new(address: SocketAddr, token: &str) -> Self {
        Self { address, token: token.to_owned() }
    }

    /// Begins a request; returns the connection for the caller to read.
    pub(super) fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let bearer = format!("Bearer {}", self.token);
        let length = body.len().to_string();
        let usual = [
            ("Host", "localhost"),
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", length.as_str()),
        ];
        let own = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let usual = usual.iter().filter(|(name, _)| !own(name));
        for (name, value) in usual.chain(headers).filter(|(_, value)| !value.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = self.begin(method, path, headers, body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(super) fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", path, headers, &body.to_string())
    }

    /// A call of patterm's own tools without a session.
    pub(super) fn own(&self, body: &Value) -> Answer {
        self.post("/mcp", &[], body)
    }
}
