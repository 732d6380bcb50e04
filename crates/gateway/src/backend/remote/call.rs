//! A request on its way, and its answer.

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

/// The pause before the stream of an answer that broke off is taken up again.
const PAUSE: Duration = Duration::from_millis(500);

/// How often it is.
const RESUMES: u32 = 5;

/// What of a refusal's body is told.
const TOLD_BYTES: usize = 500;

/// A request on its way.
pub(super) struct Call {
    pub(super) link: Arc<Link>,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) line: String,
    /// The last event that was heard of its answer.
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

    /// Brings the answer, or says why there is none.
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
                return Err("answered nothing".into());
            }
            write(out, &body).await;
            return match answers(&body, &self.id) {
                true => Ok(()),
                // It may be a page for people to log in.
                false => Err(format!("did not answer in JSON-RPC{}", told(&body))),
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
        Err("broke off before it answered".into())
    }

    /// An answer that is none, unless it says in JSON-RPC what is wrong.
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
            return Err("has forgotten the session; try again".into());
        }
        let hint = match status.as_u16() {
            401 | 403 => "; `headers` of its settings carry its token",
            300..=399 => "; its `url` must be where it is",
            _ => "",
        };
        Err(format!("answered {status}{}{hint}", told(&body)))
    }

    /// The revision that a handshake agreed on stands in all later headers.
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

/// What a body says, as the end of a sentence.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let told: String = match raw::at_path(&text, &["error", "message"]) {
        Some(span) => serde_json::from_str(&text[span]).unwrap_or_default(),
        None => text.trim().to_owned(),
    };
    let told: String = told.chars().filter(|c| !c.is_control()).take(TOLD_BYTES).collect();
    if told.is_empty() { told } else { format!(": {told}") }
}
