//! The usual request, from its head and body to a call in flight, with every check that the general
//! path makes: host, token, scope, limits, headers that agree with the body. At the first thing
//! that is not usual it returns `None`, having done nothing, and the general path decides.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::http::StatusCode;
use axum::response::Response;
use patterm_wire::Id;

use super::audit::{AuditRecord, CallOutcome};
use super::context::HttpContext;
use super::head::Head;
use super::headers::status;
use super::known::{Admitted, Known};
use super::mcp::{QueueGuard, ReaderGuard, revoked_error};
use super::response::status_of;
use super::session::SESSION_STREAM;
use super::sse::{self, EventStream};
use super::tool_call::ToolCall;
use crate::call_slot::Said;
use crate::gateway::UsualCall;
use crate::relay::{Era, MODERN, REVISIONS};
use crate::session::UsualRequest;
use crate::{GatewayError, GatewayErrorKind};

/// A call in flight.
pub(super) struct InFlight {
    call: UsualCall,
    admitted: Arc<Admitted>,
    era: Era,
    server: Arc<str>,
    tool: String,
    arguments: Option<String>,
    request_bytes: usize,
    started: Instant,
    context: HttpContext,
    ended: Option<(CallOutcome, StatusCode, usize)>,
    ended_at: Option<Instant>,
    /// In a session, its id is registered.
    registered: Option<QueueGuard>,
}

/// News about a call.
pub(super) enum Heard {
    /// A message before the answer.
    Event(String),
    Answer(Answered),
}

/// How the wait for an answer ended.
pub(super) enum Answered {
    /// The server answered, or ended.
    Response(Option<Vec<u8>>),
    Late,
    Revoked,
}

impl InFlight {
    /// Begins the usual call. The request is complete.
    pub(super) fn begin(
        context: &HttpContext,
        known: &mut Known,
        head: &Head,
        request: &[u8],
        started: Instant,
    ) -> Option<Self> {
        let server = known.server(request.get(head.path.clone())?)?;
        let fields = &head.fields;
        if fields.unusual {
            return None;
        }
        let value = |span: &Option<std::ops::Range<usize>>| request.get(span.clone()?);
        if !value(&fields.content_type)?.starts_with(b"application/json") {
            return None;
        }
        if !known.is_host(context, value(&fields.host)?) {
            return None;
        }
        let admitted = known.admit(context, value(&fields.authorization)?)?;
        let body = request.get(head.length..)?;
        let principal = &admitted.principal;
        if principal.scope.is_restricted() || !context.config().gateway.shows_all_tools(&server) {
            return None;
        }
        let call = ToolCall::read(body)?;
        let text = |span: std::ops::Range<usize>| std::str::from_utf8(body.get(span)?).ok();
        let id = Id::from_json(text(call.id.clone())?)?;
        let tool = text(call.tool.clone())?;
        let (era, peer, registered) = match call.revision {
            None => {
                let is_known =
                    |v: &[u8]| REVISIONS.iter().any(|r| r.as_bytes() == v && *r != MODERN);
                if !value(&fields.version).is_none_or(is_known) {
                    return None;
                }
                let own = value(&fields.session)?;
                let session = known.session(context, own, principal, &server)?;
                session.touch_at(started);
                // The general path refuses a second call with the same id.
                if !session.register_unstreamed(&id) {
                    return None;
                }
                let guard = QueueGuard { session: session.clone(), id: id.clone() };
                (Era::Legacy, &session.peer, Some(guard))
            }
            Some(revision) => {
                // The general path checks whose session it is.
                if fields.session.is_some() {
                    return None;
                }
                let modern = Some(MODERN.as_bytes());
                if body.get(revision) != modern || value(&fields.version) != modern {
                    return None;
                }
                if value(&fields.method) != Some(b"tools/call")
                    || value(&fields.name) != Some(tool.as_bytes())
                {
                    return None;
                }
                if tool.starts_with("=?") || !context.param_headers().is_empty(&server) {
                    return None;
                }
                (Era::Modern, known.stateless(context, principal, &server)?, None)
            }
        };
        let wants_arguments = context.config().audit.as_ref().is_some_and(|a| a.wants_arguments());
        let arguments = wants_arguments.then(|| text(call.params).map(str::to_owned)).flatten();
        let tool = tool.to_owned();
        let request = UsualRequest {
            id: &id,
            era,
            text: body,
            id_span: call.id,
            token_span: call.token,
            started,
        };
        let call = peer.begin_usual(&request)?;
        Some(Self {
            call,
            era,
            server,
            tool,
            arguments,
            request_bytes: body.len(),
            started,
            context: context.clone(),
            ended: None,
            ended_at: None,
            registered,
            admitted,
        })
    }

    /// When it times out.
    pub(super) fn deadline(&self) -> Instant {
        self.started + self.call.timeout()
    }

    /// The next news about it.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Heard> {
        match self.call.poll(context) {
            Poll::Ready(Said::Event(text)) => Poll::Ready(Heard::Event(text)),
            Poll::Ready(Said::Response(response)) => {
                let response = response.and_then(Result::ok);
                Poll::Ready(Heard::Answer(Answered::Response(response)))
            }
            Poll::Pending => {
                let revoked = self.admitted.revocation.poll(context);
                revoked.map(|()| Heard::Answer(Answered::Revoked))
            }
        }
    }

    /// Opens the stream on which it is answered; in a session, a client can resume it.
    pub(super) fn open_stream(&self) -> Events {
        let (number, stream) = match &self.registered {
            Some(registered) => registered.session.open(),
            None => (SESSION_STREAM, Arc::<EventStream>::default()),
        };
        Events { number, stream }
    }

    /// Ends its stream with the answer.
    pub(super) fn finish_stream(mut self, events: &Events, answered: Answered, now: Instant) {
        let (_, body) = self.finish(answered, now);
        if let Some((_, status, _)) = &mut self.ended {
            *status = StatusCode::OK;
        }
        events.push(&String::from_utf8_lossy(&body));
        events.stream.end();
    }

    /// Follows it on a task of its own, because a client may disconnect and resume its stream.
    pub(super) fn follow(mut self, events: Events) -> Response {
        let (stream, is_resumable) = (events.stream.clone(), self.registered.is_some());
        let task = tokio::spawn(async move {
            let deadline = self.deadline().into();
            let answered = loop {
                let heard = poll_fn(|context| self.poll(context));
                match tokio::time::timeout_at(deadline, heard).await {
                    Ok(Heard::Event(text)) => events.push(&text),
                    Ok(Heard::Answer(answered)) => break answered,
                    Err(_) => break Answered::Late,
                }
            };
            self.finish_stream(&events, answered, tokio::time::Instant::now().into_std());
        });
        let guard = ReaderGuard::new(stream.clone(), task.abort_handle(), is_resumable);
        sse::response(stream, None, guard)
    }

    /// The response: its status and body.
    pub(super) fn finish(&mut self, answered: Answered, now: Instant) -> (StatusCode, Vec<u8>) {
        self.ended_at = Some(now);
        let failed = match answered {
            Answered::Response(Some(body)) => {
                self.call.answered();
                let outcome = CallOutcome::of(&body);
                let status = match outcome {
                    CallOutcome::Error(_) => status(self.era, &body),
                    _ => StatusCode::OK,
                };
                self.ended = Some((outcome, status, body.len()));
                return (status, body);
            }
            Answered::Response(None) => {
                self.call.answered();
                let message = format!("`{}` ended before it answered", self.server);
                GatewayError::new(GatewayErrorKind::Ended, message)
            }
            Answered::Late => {
                self.call.timed_out();
                let limit = self.call.timeout();
                let message = format!("`{}` did not answer within {limit:?}", self.server);
                GatewayError::new(GatewayErrorKind::Timeout, message)
            }
            Answered::Revoked => revoked_error(),
        };
        let (status, body) = (status_of(&failed), failed.to_response(self.call.id()));
        self.ended = Some((CallOutcome::of_error(&failed), status, body.len()));
        (status, body)
    }
}

/// The stream of a call.
pub(super) struct Events {
    number: u64,
    stream: Arc<EventStream>,
}

impl Events {
    pub(super) fn push(&self, text: &str) {
        self.stream.push(self.number, text);
    }

    /// All events, which are written together.
    pub(super) fn read_all(&self) -> Vec<u8> {
        self.stream.read_all()
    }
}

/// Records the call; without an answer it was cancelled.
impl Drop for InFlight {
    fn drop(&mut self) {
        let ended_at = self.ended_at.unwrap_or_else(|| tokio::time::Instant::now().into_std());
        let duration = ended_at.saturating_duration_since(self.started);
        let status = self.ended.map(|(_, status, _)| status.as_u16());
        self.context.counts().count(status, duration);
        let Some(audit) = &self.context.config().audit else { return };
        let (outcome, _, response_bytes) =
            self.ended.unwrap_or((CallOutcome::Cancelled, StatusCode::OK, 0));
        audit.record(&AuditRecord {
            who: Some(&self.admitted.principal.name),
            server: &self.server,
            method: Some("tools/call"),
            tool: Some(&self.tool),
            arguments: self.arguments.as_deref(),
            outcome,
            status,
            duration,
            request_bytes: self.request_bytes,
            response_bytes,
        });
    }
}
