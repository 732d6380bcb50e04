//! An HTTP client: a connection, a session, and one call at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

/// Longer than any response of a working server takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A client with its own connection and session.
pub(crate) struct Client {
    stream: TcpStream,
    port: u16,
    path: &'static str,
    token: String,
    session: Option<String>,
    calls: u64,
}

impl Client {
    pub(crate) fn connect(port: u16, path: &'static str, token: &str) -> anyhow::Result<Self> {
        let token = token.to_owned();
        let mut client = Self { stream: open(port)?, port, path, token, session: None, calls: 0 };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"}}});
        let (head, _) = client.exchange("POST", &hello.to_string())?;
        anyhow::ensure!(head.starts_with("http/1.1 200"), "initialize: {head}");
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        client.session = session.map(str::to_owned);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.exchange("POST", &ready.to_string())?;
        Ok(client)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.calls += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let (head, body) = self.exchange("POST", &call.to_string())?;
        // One event of a stream, or a plain response.
        let mut data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = data.rfind(|data| !data.is_empty()).unwrap_or(&body);
        let mut answer: Value =
            serde_json::from_str(text).with_context(|| format!("{head}\n{body}"))?;
        anyhow::ensure!(answer["id"] == self.calls, "not the answer to {}: {answer}", self.calls);
        anyhow::ensure!(answer["result"].is_object(), "{tool}: {answer}");
        anyhow::ensure!(answer["result"]["isError"] != true, "{tool}: {answer}");
        Ok(answer["result"].take())
    }

    /// Ends the session.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.exchange("DELETE", "")?;
        Ok(())
    }

    /// Sends a request; returns head (in lower case) and body of the response.
    fn exchange(&mut self, method: &str, body: &str) -> anyhow::Result<(String, String)> {
        let (path, port, token, length) = (self.path, self.port, &self.token, body.len());
        let session = self.session.as_ref().map_or(String::new(), |session| {
            format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n{session}\r\n{body}"
        );
        // An idle connection may have been closed; then the request was not received.
        match self.send(&request) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) | Err(_) => {
                self.stream = open(self.port)?;
                self.send(&request)?.context("the connection was closed at once")
            }
        }
    }

    /// Sends a request and reads the response; `None` if the connection ends before it begins.
    fn send(&mut self, request: &str) -> anyhow::Result<Option<(String, String)>> {
        self.stream.write_all(request.as_bytes())?;
        let (mut answer, mut bytes) = (Vec::new(), [0; 16 << 10]);
        loop {
            if let Some(whole) = complete(&answer)? {
                return Ok(Some(whole));
            }
            let read = self.stream.read(&mut bytes)?;
            if read == 0 && answer.is_empty() {
                return Ok(None);
            }
            anyhow::ensure!(
                read > 0,
                "the connection was closed after {}",
                String::from_utf8_lossy(&answer)
            );
            answer.extend_from_slice(&bytes[..read]);
        }
    }
}

fn open(port: u16) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Head and body, once complete.
fn complete(answer: &[u8]) -> anyhow::Result<Option<(String, String)>> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let body = &answer[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let there = match length {
        Some(length) => body.len() >= length.trim().parse::<usize>()?,
        None if head.contains("transfer-encoding: chunked") => body.ends_with(b"0\r\n\r\n"),
        None => true,
    };
    Ok(there.then(|| (head, String::from_utf8_lossy(body).into_owned())))
}
