//! The HTTP client of remote servers and of hooks, with or without TLS. It follows no redirects.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::http::Request;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client.
pub enum HttpClient {
    /// For http URLs.
    Plain(Client<HttpConnector, Full<Bytes>>),
    /// For https URLs.
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "HttpClient::Plain",
            Self::Tls(_) => "HttpClient::Tls",
        })
    }
}

impl HttpClient {
    /// A client for https URLs, which reads the machine's certificates, or for http URLs.
    pub fn new(secure: bool) -> std::io::Result<Self> {
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

    /// Sends a request. Dropping the future, or the response, cancels it.
    pub fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// Why a request failed, with its causes.
pub fn error_with_causes(error: &dyn Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(inner) = next {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        next = inner.source();
    }
    text
}
