//! The connection to a remote server: its pending requests, its session, and its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming as Body};
use patterm_wire::{Id, Incoming, Message};
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::events::{EventStream, LineWriter, is_events};
use super::headers::stateless_headers;
use super::request::RemoteRequest;
use super::{END_TIMEOUT, Remote};
use crate::error::{GatewayError, GatewayErrorKind};
use crate::http_client::{HttpClient, error_with_causes};
use crate::raw;
use crate::relay::Era;

/// How long a notification may take to be accepted: later messages wait for it.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before an interrupted stream is resumed, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The connection to a remote server.
pub(super) struct RemoteConnection {
    pub(super) uri: Uri,
    headers: HeaderMap,
    pub(super) client: HttpClient,
    state: Mutex<RemoteState>,
    pub(super) end: CancellationToken,
}

#[derive(Default)]
pub(super) struct RemoteState {
    /// The session of the older era, and the revision that was agreed on.
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    /// Pending requests, by id.
    open: HashMap<Id, JoinHandle<()>>,
    /// Why it ended by itself.
    reason_for_end: Option<String>,
    /// The stream of messages that belong to no request is being followed.
    follows: bool,
}

impl RemoteConnection {
    pub(super) fn new(remote: &Remote) -> Result<Self, GatewayError> {
        let bad = |reason_for_end: String| {
            let message = format!("`{}` cannot be used: {reason_for_end}", remote.url);
            GatewayError::new(GatewayErrorKind::Unavailable, message)
        };
        let uri: Uri =
            remote.url.parse().map_err(|e| bad(format!("it is not a valid URL ({e})")))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("it starts with neither https:// nor http://".into())),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &remote.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| bad(format!("`{name}` is not a valid header name")))?;
            // The value may be a token: it is not shown.
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| bad(format!("the value of the header `{name}` is not valid")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = HttpClient::new(secure)
            .map_err(|e| bad(format!("cannot load trusted certificates: {e}")))?;
        let (state, end) = (Mutex::default(), CancellationToken::new());
        Ok(Self { uri, headers, client, state, end })
    }

    /// Serves lines until the input ends.
    pub(super) async fn serve(self: Arc<Self>, lines: DuplexStream, out: LineWriter) {
        let mut lines = BufReader::new(lines).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(Incoming::One(message)) = Incoming::parse(line.as_bytes()) else { continue };
            match message {
                Message::Request { id, method, .. } => {
                    let call = self.clone().call(id.clone(), method.to_string(), line.clone());
                    let (connection, out, of) = (self.clone(), out.clone(), id.clone());
                    // The handshake must be answered before anything else is sent.
                    let first = method == "initialize";
                    let task = tokio::spawn(async move {
                        call.run(&out).await;
                        connection.state().open.remove(&of);
                    });
                    match first {
                        true => drop(task.await),
                        false if !task.is_finished() => {
                            self.state().open.insert(id, task);
                        }
                        false => {}
                    }
                }
                Message::Notification { ref method, .. } => {
                    if method == "notifications/cancelled" {
                        self.cancel(&line);
                    }
                    self.notify(&line).await;
                    if method == "notifications/initialized" {
                        self.follow(&out);
                    }
                }
                Message::Response { .. } => self.notify(&line).await,
            }
        }
    }

    fn call(self: Arc<Self>, id: Id, method: String, line: String) -> RemoteRequest {
        RemoteRequest { connection: self, id, method, line, last: None }
    }

    /// Closing the request cancels it; in the stateless era nothing else is sent.
    fn cancel(&self, line: &str) {
        let id = raw::at_path(line, &["params", "requestId"]);
        let id = id.and_then(|span| Id::from_json(&line[span]));
        if let Some(task) = id.and_then(|id| self.state().open.remove(&id)) {
            task.abort();
        }
    }

    /// Sends a message that expects no response.
    async fn notify(&self, line: &str) {
        let modern = self.state().session.is_none() && self.state().version.is_none();
        // In the stateless era there is no session that could take it.
        if modern && Era::of(line) != Era::Modern {
            return;
        }
        let Ok(request) = self.request(Method::POST, line) else { return };
        let quoted_message = timeout(NOTIFY_TIMEOUT, self.client.request(request)).await;
        if let Ok(Ok(response)) = quoted_message
            && response.status() == StatusCode::NOT_FOUND
        {
            self.session_lost();
        }
    }

    /// A request with all its headers.
    pub(super) fn request(
        &self,
        method: Method,
        line: &str,
    ) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder().method(method.clone()).uri(self.uri.clone());
        if let Some(headers) = request.headers_mut() {
            *headers = self.headers.clone();
            let accept = match method {
                Method::GET => "text/event-stream",
                _ => "application/json, text/event-stream",
            };
            headers.insert("accept", HeaderValue::from_static(accept));
            if method == Method::POST {
                headers.insert("content-type", HeaderValue::from_static("application/json"));
            }
            let state = self.state();
            if let Some(session) = &state.session {
                headers.insert(SESSION, session.clone());
            }
            if let Some(version) = &state.version {
                headers.insert(VERSION, version.clone());
            }
            drop(state);
            if method == Method::POST && Era::of(line) == Era::Modern {
                stateless_headers(headers, line);
            }
        }
        let body = Full::new(Bytes::from(line.to_owned()));
        request.body(body).map_err(|e| e.to_string())
    }

    /// Follows the stream of messages that belong to no request, if the server has one.
    fn follow(self: &Arc<Self>, out: &LineWriter) {
        if std::mem::replace(&mut self.state().follows, true) {
            return;
        }
        let (connection, out) = (self.clone(), out.clone());
        let end = self.end.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = connection.follow_stream(&out) => {}
                () = end.cancelled() => {}
            }
        });
    }

    async fn follow_stream(&self, out: &LineWriter) {
        let (mut last, mut pause) = (None, FIRST_PAUSE);
        loop {
            let answer = self.resume(last.as_ref()).await;
            match answer {
                Ok(response) if is_events(&response) => {
                    let mut events = EventStream::default();
                    let received = events.read(response.into_body(), out, None).await;
                    last = events.last.or(last);
                    if received.is_ok() {
                        pause = FIRST_PAUSE;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    return self.session_lost();
                }
                // The server has no such stream.
                Ok(response) if response.status().is_client_error() => return,
                Ok(_) | Err(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A stream, from the last event on.
    pub(super) async fn resume(
        &self,
        last: Option<&HeaderValue>,
    ) -> Result<Response<Body>, String> {
        let mut request = self.request(Method::GET, "")?;
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.clone());
        }
        self.client.request(request).await.map_err(|e| error_with_causes(&e))
    }

    /// The server dropped the session: the next call begins another.
    pub(super) fn session_lost(&self) {
        let mut state = self.state();
        if state.session.take().is_some() {
            state.reason_for_end = Some("has dropped the session".into());
            drop(state);
            self.end.cancel();
        }
    }

    pub(super) fn reason_for_end(&self) -> String {
        self.state().reason_for_end.clone().unwrap_or_else(|| "was ended".into())
    }

    /// Closes all requests, and ends the session if there is one.
    pub(super) async fn close(&self) {
        self.end.cancel();
        for (_, task) in self.state().open.drain() {
            task.abort();
        }
        if self.state().session.is_some()
            && let Ok(request) = self.request(Method::DELETE, "")
        {
            let _ = timeout(END_TIMEOUT, self.client.request(request)).await;
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RemoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
