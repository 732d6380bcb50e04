//! The HTTP client, with or without TLS, and the headers of the stateless era.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::raw;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client.
pub(super) enum HttpClient {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl HttpClient {
    pub(super) fn new(secure: bool) -> std::io::Result<Self> {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(CONNECT_TIMEOUT));
        plain.set_nodelay(true);
        plain.enforce_http(!secure);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new());
        if !secure {
            return Ok(Self::Plain(client.build(plain)));
        }
        // The certificates that the machine trusts, those of a company included.
        let tls = HttpsConnectorBuilder::new().with_native_roots()?.https_only();
        Ok(Self::Tls(client.build(tls.enable_http1().wrap_connector(plain))))
    }

    pub(super) fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// Sets the headers of the stateless era from the body.
pub(super) fn stateless_headers(headers: &mut HeaderMap, line: &str) {
    let text = |path: &[&str]| -> Option<String> {
        let span = raw::at_path(line, path)?;
        serde_json::from_str(&line[span]).ok()
    };
    let mut put = |name: &'static str, value: Option<String>| {
        let value = value.and_then(|value| HeaderValue::from_str(&plain(value)).ok());
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    let method = text(&["method"]);
    let member = match method.as_deref() {
        Some("tools/call" | "prompts/get") => Some("name"),
        Some("resources/read") => Some("uri"),
        _ => None,
    };
    put("mcp-name", member.and_then(|member| text(&["params", member])));
    put("mcp-method", method);
    let version = text(&["params", "_meta", "io.modelcontextprotocol/protocolVersion"]);
    put("mcp-protocol-version", version);
}

/// A value that a header cannot contain is encoded as `=?base64?…?=`.
fn plain(value: String) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    match is_plain {
        true => value,
        false => format!("=?base64?{}?=", patterm_wire::base64::encode(value.as_bytes())),
    }
}
