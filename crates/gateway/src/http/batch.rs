//! Batches of messages, which only revision 2025-03-26 has: the requests of a batch run at the same
//! time, and their responses are one JSON array.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::join_all;
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::{ErrorObject, Id, Message, reply};
use serde_json::value::RawValue;

use super::admission::Principal;
use super::audit::{AuditEntry, CallOutcome};
use super::context::HttpContext;
use super::mcp::revoked_error;
use super::response::{HttpError, empty, json};
use super::session::Session;
use crate::relay::Era;

/// The revision that has batches.
pub(super) const REVISION: &str = "2025-03-26";

/// Messages of one batch: more than clients send, and each request is a call in flight.
const MOST: usize = 100;

/// A request of a batch.
struct Call {
    id: Id,
    method: String,
    text: String,
    entry: AuditEntry,
}

/// A batch that was read: its requests, and the errors of those that are refused.
pub(super) struct Batch {
    session: Arc<Session>,
    calls: Vec<Call>,
    refused: Vec<Vec<u8>>,
}

impl Batch {
    /// Reads a batch. Its notifications are forwarded.
    pub(super) fn read(
        context: &HttpContext,
        principal: &Principal,
        session: Option<Arc<Session>>,
        elements: &[&RawValue],
    ) -> Result<Self, HttpError> {
        let bad = |why: String| {
            let error = ErrorObject::new(INVALID_REQUEST, why);
            HttpError::with_error(StatusCode::BAD_REQUEST, None, error)
        };
        let session = session.filter(|session| session.has_batches()).ok_or_else(|| {
            bad(format!(
                "a batch needs a session of revision {REVISION}; other revisions have none"
            ))
        })?;
        if elements.len() > MOST {
            return Err(bad(format!("a batch of {} messages; at most {MOST}", elements.len())));
        }
        let mut batch = Self { session, calls: Vec::new(), refused: Vec::new() };
        for element in elements {
            batch.add(context, principal, element);
        }
        Ok(batch)
    }

    fn add(&mut self, context: &HttpContext, principal: &Principal, element: &RawValue) {
        let text = element.get();
        let (id, method) = match Message::from_raw(element) {
            Ok(Message::Request { id, method, .. }) => (id, method),
            Ok(other) => return self.session.peer.notify(&other, text),
            Err(malformed) => {
                return self.refused.push(reply::error(malformed.id.as_ref(), &malformed.error));
            }
        };
        let mut entry = AuditEntry::start(context, &self.session.server);
        entry.set_caller(&principal.name);
        entry.set_message(&method, text);
        let error = if method == "initialize" || Era::of(text) == Era::Modern {
            let why = "initialize and stateless requests cannot be part of a batch";
            Some(ErrorObject::new(INVALID_REQUEST, why))
        } else if !self.session.register_unstreamed(&id) {
            Some(ErrorObject::duplicate_id())
        } else {
            None
        };
        if let Some(error) = error {
            entry.answered(CallOutcome::Refused, StatusCode::OK, 0);
            return self.refused.push(reply::error(Some(&id), &error));
        }
        let (method, text) = (method.into_owned(), text.to_owned());
        self.calls.push(Call { id, method, text, entry });
    }

    /// Answers it. Dropping the future cancels its calls.
    pub(super) async fn answer(mut self, context: &HttpContext, who: &str) -> Response {
        let calls = std::mem::take(&mut self.calls);
        let ids = Registered {
            session: &self.session,
            ids: calls.iter().map(|c| c.id.clone()).collect(),
        };
        let answers = calls.into_iter().map(|call| self.run(context, who, call));
        let mut answers = join_all(answers).await;
        drop(ids);
        answers.append(&mut self.refused);
        match answers.is_empty() {
            true => empty(StatusCode::ACCEPTED),
            false => json(StatusCode::OK, reply::batch(&answers)),
        }
    }

    async fn run(&self, context: &HttpContext, who: &str, call: Call) -> Vec<u8> {
        let Call { id, method, text, mut entry } = call;
        let answered = tokio::select! {
            biased;
            answered = self.session.peer.request(&id, &method, text) => answered,
            () = context.until_revoked(who) => Err(revoked_error()),
        };
        let outcome = super::mcp::outcome(&answered);
        let body = answered.unwrap_or_else(|error| error.to_response(&id));
        entry.answered(outcome, StatusCode::OK, body.len());
        body
    }
}

/// The requests that keep the session busy.
struct Registered<'a> {
    session: &'a Session,
    ids: Vec<Id>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.ids.iter().for_each(|id| self.session.unregister(id));
    }
}
