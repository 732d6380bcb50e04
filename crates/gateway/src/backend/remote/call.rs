//! One request to a remote server, and its response.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming as Body;
use patterm_wire::Id;
use tokio::time::sleep;

use super::events::{Events, Out, answers, collect, is_events, reason, write};
use super::link::{Link, SESSION};
use crate::raw;
use crate::refusal::{Refusal, RefusalKind};

/// The pause before an interrupted response is resumed.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a response is resumed.
const RESUMES: u32 = 5;

/// Characters of an error's body that are quoted.
const TOLD_BYTES: usize = 500;

/// A request in progress.
pub(super) struct Call {
    pub(super) link: Arc<Link>,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) line: String,
    /// The last event of its response.
    pub(super) last: Option<HeaderValue>,
}

impl Call {
    pub(super) async fn run(mut self, out: &Out) {
        if let Err(why) = self.answer(out).await {
            let host = self.link.uri.authority().map_or("?", |authority| authority.as_str());
            let refusal = Refusal::new(RefusalKind::Unavailable, format!("{host} {why}"));
            write(out, &refusal.to_answer(&self.id)).await;
        }
    }

    /// Forwards the response, or returns why there is none.
    async fn answer(&mut self, out: &Out) -> Result<(), String> {
        let request = self.link.request(Method::POST, &self.line)?;
        let response = self.link.client.request(request).await;
        let response = response.map_err(|e| format!("cannot be reached: {}", reason(&e)))?;
        if self.method == "initialize" {
            self.link.state().session = response.headers().get(SESSION).cloned();
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
                false => Err(format!("did not answer with JSON-RPC{}", told(&body))),
            };
        }
        let mut response = response;
        for _ in 0..=RESUMES {
            let mut events = Events::after(self.last.take());
            let heard = events.read(response.into_body(), out, Some(&self.id)).await;
            self.last = events.last;
            if let Ok(Some(answer)) = heard {
                self.note_version(&answer);
                return Ok(());
            }
            if self.last.is_none() {
                break;
            }
            sleep(PAUSE).await;
            response = self.link.resume(self.last.as_ref()).await?;
            if !is_events(&response) {
                break;
            }
        }
        Err("closed the connection before it answered".into())
    }

    /// Handles an error status; the body may be a JSON-RPC error.
    async fn refused(&self, response: Response<Body>, out: &Out) -> Result<(), String> {
        let status = response.status();
        let had_session = self.link.state().session.is_some();
        let body = collect(response.into_body()).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let own = raw::member(&text, "error").is_some();
        let about = raw::member(&text, "id").and_then(Id::from_json);
        if own && about.as_ref() == Some(&self.id) {
            write(out, &body).await;
            return Ok(());
        }
        if status == StatusCode::NOT_FOUND && had_session && self.method != "initialize" {
            self.link.lost();
            return Err("has dropped the session; try again".into());
        }
        let hint = match status.as_u16() {
            401 | 403 => "; set its token in `headers`",
            300..=399 => "; set `url` to its final address",
            _ => "",
        };
        Err(format!("answered {status}{}{hint}", told(&body)))
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
        self.link.state().version = version;
    }
}

/// A body's message, as the end of a sentence.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let told: String = match raw::at_path(&text, &["error", "message"]) {
        Some(span) => serde_json::from_str(&text[span]).unwrap_or_default(),
        None => text.trim().to_owned(),
    };
    let told: String = told.chars().filter(|c| !c.is_control()).take(TOLD_BYTES).collect();
    if told.is_empty() { told } else { format!(": {told}") }
}
