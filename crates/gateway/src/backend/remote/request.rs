//! One request to a remote server, and its response.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming as Body;
use patterm_wire::Id;
use tokio::time::sleep;

use super::connection::{RemoteConnection, SESSION};
use super::events::{EventStream, LineWriter, answers, collect, is_events, write};
use crate::error::{GatewayError, GatewayErrorKind};
use crate::http_client::error_with_causes;
use crate::raw;

/// The pause before an interrupted response is resumed.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a response is resumed.
const RESUMES: u32 = 5;

/// Characters of an error's body that are quoted.
const QUOTED_CHARS: usize = 500;

/// A request in progress.
pub(super) struct RemoteRequest {
    pub(super) connection: Arc<RemoteConnection>,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) line: String,
    /// The last event of its response.
    pub(super) last: Option<HeaderValue>,
}

impl RemoteRequest {
    pub(super) async fn run(mut self, out: &LineWriter) {
        if let Err(reason_for_end) = self.answer(out).await {
            let host = self.connection.uri.authority().map_or("?", |authority| authority.as_str());
            let refusal = GatewayError::new(
                GatewayErrorKind::Unavailable,
                format!("{host} {reason_for_end}"),
            );
            write(out, &refusal.to_response(&self.id)).await;
        }
    }

    /// Forwards the response, or returns why there is none.
    async fn answer(&mut self, out: &LineWriter) -> Result<(), String> {
        let request = self.connection.request(Method::POST, &self.line)?;
        let response = self.connection.client.request(request).await;
        let response =
            response.map_err(|e| format!("cannot be reached: {}", error_with_causes(&e)))?;
        if self.method == "initialize" {
            self.connection.state().session = response.headers().get(SESSION).cloned();
        }
        if !response.status().is_success() {
            return self.refused(response, out).await;
        }
        if !is_events(&response) {
            let body = collect(response.into_body()).await?;
            self.note_version(&body);
            if body.trim_ascii().is_empty() {
                return Err("sent an empty response".into());
            }
            write(out, &body).await;
            return match answers(&body, &self.id) {
                true => Ok(()),
                // It may be a login page.
                false => Err(format!("did not answer with JSON-RPC{}", quoted_message(&body))),
            };
        }
        let mut response = response;
        for _ in 0..=RESUMES {
            let mut events = EventStream::after(self.last.take());
            let received = events.read(response.into_body(), out, Some(&self.id)).await;
            self.last = events.last;
            if let Ok(Some(answer)) = received {
                self.note_version(&answer);
                return Ok(());
            }
            if self.last.is_none() {
                break;
            }
            sleep(PAUSE).await;
            response = self.connection.resume(self.last.as_ref()).await?;
            if !is_events(&response) {
                break;
            }
        }
        Err("closed the connection before it answered".into())
    }

    /// Handles an error status; the body may be a JSON-RPC error.
    async fn refused(&self, response: Response<Body>, out: &LineWriter) -> Result<(), String> {
        let status = response.status();
        let had_session = self.connection.state().session.is_some();
        let body = collect(response.into_body()).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let own = raw::member(&text, "error").is_some();
        let about = raw::member(&text, "id").and_then(Id::from_json);
        if own && about.as_ref() == Some(&self.id) {
            write(out, &body).await;
            return Ok(());
        }
        if status == StatusCode::NOT_FOUND && had_session && self.method != "initialize" {
            self.connection.session_lost();
            return Err("has dropped the session; try again".into());
        }
        let hint = match status.as_u16() {
            401 | 403 => "; set its token in `headers`",
            300..=399 => "; set `url` to its final address",
            _ => "",
        };
        Err(format!("answered {status}{}{hint}", quoted_message(&body)))
    }

    /// All later headers contain the revision that the handshake agreed on.
    fn note_version(&self, answer: &[u8]) {
        if self.method != "initialize" {
            return;
        }
        let text = String::from_utf8_lossy(answer);
        let version = raw::at_path(&text, &["result", "protocolVersion"]);
        let version = version.map(|span| text[span].trim_matches('"').to_owned());
        let version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        self.connection.state().version = version;
    }
}

/// A body's message, as the end of a sentence.
fn quoted_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let quoted_message: String = match raw::at_path(&text, &["error", "message"]) {
        Some(span) => serde_json::from_str(&text[span]).unwrap_or_default(),
        None => text.trim().to_owned(),
    };
    let quoted_message: String =
        quoted_message.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS).collect();
    if quoted_message.is_empty() { quoted_message } else { format!(": {quoted_message}") }
}
