//! Streamable HTTP: one message per POST, answered as JSON, or as a stream of events if there are
//! messages before the response.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use patterm_wire::{ErrorObject, Id, Incoming, Message};
use tokio::task::AbortHandle;

use super::admission::Principal;
use super::audit::{AuditEntry, CallOutcome};
use super::batch::{self, Batch};
use super::context::HttpContext;
use super::listener::RequestBody;
use super::response::{HttpError, empty, json, not_allowed, status_of};
use super::session::{Notifications, SESSION_STREAM, Session};
use super::{headers as standard, sse};
use crate::relay::Era;
use crate::{GatewayError, GatewayErrorKind};

/// How long a client that disconnected may take to resume its response.
const RESUME_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a body may take to arrive: enough for the longest over a slow connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// The methods of an MCP endpoint.
pub(super) const METHODS: &str = "GET, POST, DELETE, OPTIONS";
const METHODS_WITHOUT_SESSION: &str = "POST, OPTIONS";

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The response of a server, which is pending.
type UpstreamResponse =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<u8>, GatewayError>> + Send>>;

/// Serves `/mcp` and `/servers/{name}/mcp`.
pub(super) async fn serve<B: RequestBody>(
    context: HttpContext,
    server: &str,
    request: Request<B>,
) -> Response {
    let mut entry = AuditEntry::start(&context, server);
    match serve_recorded(&context, server, request, &mut entry).await {
        Ok(response) => response,
        Err(error) => {
            entry.answered(CallOutcome::Refused, error.status(), 0);
            error.into_response()
        }
    }
}

async fn serve_recorded<B: RequestBody>(
    context: &HttpContext,
    server: &str,
    request: Request<B>,
    entry: &mut AuditEntry,
) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let principal = context.admit(&parts.uri, &parts.headers)?;
    entry.set_caller(&principal.name);
    let response = match parts.method {
        Method::POST => {
            let body = read_body(context, body, &parts.headers).await?;
            let action = post(context, server, &principal, &parts.headers, &body, entry)?;
            // Dropped before the response is awaited: the connection reads the next request into
            // the same buffer.
            drop((parts, body));
            return action.finish(context, server, &principal, entry).await;
        }
        Method::GET => get(context, server, &principal, &parts.headers)?,
        Method::DELETE => {
            let session = session_of(context, server, &principal, &parts.headers)?;
            let session = session.ok_or_else(no_session)?;
            context.end_session(&session);
            empty(StatusCode::NO_CONTENT)
        }
        _ => not_allowed(METHODS),
    };
    entry.set_message(parts.method.as_str(), "");
    let served = response.status().is_success();
    let outcome = if served { CallOutcome::Ok } else { CallOutcome::Refused };
    entry.answered(outcome, response.status(), 0);
    Ok(response)
}

/// Reads a JSON body of limited size.
pub(super) async fn read_body<B: RequestBody>(
    context: &HttpContext,
    body: B,
    headers: &HeaderMap,
) -> Result<Bytes, HttpError> {
    let limit = context.config().limits.body_bytes;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.trim_start().starts_with("application/json")) {
        let why = "the body must be application/json";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let too_large = || {
        let why = format!("the body exceeds {limit} bytes");
        HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large());
    }
    let collected = Limited::new(body, limit).collect();
    match context.body_timeouts().timeout(BODY_TIMEOUT, collected).await {
        Some(Ok(collected)) => Ok(collected.to_bytes()),
        Some(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Some(Err(_)) => Err(HttpError::new(StatusCode::BAD_REQUEST, "the body is incomplete")),
        None => {
            let why = format!("the body did not arrive within {BODY_TIMEOUT:?}");
            Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

fn session_of(
    context: &HttpContext,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Option<Arc<Session>>, HttpError> {
    let Some(id) = headers.get(SESSION) else { return Ok(None) };
    let id = id.to_str().unwrap_or_default();
    context.session(id, principal, server).map(Some)
}

fn no_session() -> HttpError {
    HttpError::new(
        StatusCode::BAD_REQUEST,
        "`Mcp-Session-Id` is missing; the response to initialize contains it",
    )
}

/// What remains to be done after a request was read.
enum PostAction {
    /// Nothing.
    Respond(Response),
    Answer(PendingCall, UpstreamResponse, Notifications),
    BeginSession(Id, String),
    Batch(Batch),
}

impl PostAction {
    async fn finish(
        self,
        context: &HttpContext,
        server: &str,
        principal: &Principal,
        entry: &mut AuditEntry,
    ) -> Result<Response, HttpError> {
        match self {
            Self::Respond(response) => Ok(response),
            Self::Answer(call, response, notifications) => {
                Ok(call.answer(context, &principal.name, response, notifications).await)
            }
            Self::BeginSession(id, text) => {
                begin_session(context, server, principal, id, text, entry).await
            }
            Self::Batch(batch) => Ok(batch.answer(context, &principal.name).await),
        }
    }
}

fn post(
    context: &HttpContext,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
    body: &[u8],
    entry: &mut AuditEntry,
) -> Result<PostAction, HttpError> {
    let bad = |id: Option<Id>, error: ErrorObject| {
        HttpError::with_error(StatusCode::BAD_REQUEST, id, error)
    };
    let message = match Incoming::parse(body) {
        Ok(Incoming::One(message)) => message,
        Ok(Incoming::Batch(elements)) => {
            let session = session_of(context, server, principal, headers)?;
            let batch = Batch::read(context, principal, session, &elements)?;
            // Each request of it has its own entry.
            entry.discard();
            return Ok(PostAction::Batch(batch));
        }
        Err(malformed) => return Err(bad(malformed.id, malformed.error)),
    };
    let not_text = |_| bad(None, ErrorObject::parse_error("not UTF-8"));
    let text = std::str::from_utf8(body).map_err(not_text)?;
    match &message {
        Message::Request { method, .. } | Message::Notification { method, .. } => {
            entry.set_message(method, text);
        }
        Message::Response { .. } => entry.set_message("response", text),
    }
    let session = session_of(context, server, principal, headers)?;
    let (id, method) = match message {
        Message::Request { id, method, .. } => (id, method),
        other => {
            if let Some(session) = session {
                session.peer.notify(&other, text);
            }
            entry.answered(CallOutcome::Ok, StatusCode::ACCEPTED, 0);
            return Ok(PostAction::Respond(empty(StatusCode::ACCEPTED)));
        }
    };
    let era = Era::of(text);
    let mut checked = standard::check(headers, era, &method, text);
    if era == Era::Modern && method == "tools/call" {
        checked = checked.and_then(|()| context.param_headers().check(server, headers, text));
    }
    checked.map_err(|error| bad(Some(id.clone()), error))?;
    let (method, text) = (method.into_owned(), text.to_owned());
    if let Some(session) = session.filter(|_| era == Era::Legacy) {
        let call = PendingCall { id, era, session: Some(session.clone()), entry: entry.take() };
        return Ok(call.in_session(session, method, text));
    }
    if method == "initialize" && era == Era::Legacy {
        return Ok(PostAction::BeginSession(id, text));
    }
    let (peer, notifications) = context.connect(server, principal, "")?;
    let request_id = id.clone();
    let lists = era == Era::Modern && method == "tools/list";
    let mut response: UpstreamResponse =
        Box::pin(async move { peer.request(&request_id, &method, text).await });
    if lists {
        response = learn_headers(context.clone(), server.to_owned(), response);
    }
    let call = PendingCall { id, era, session: None, entry: entry.take() };
    Ok(PostAction::Answer(call, response, Notifications::OfClient(notifications)))
}

/// A call whose response tells which headers later calls must have.
fn learn_headers(
    context: HttpContext,
    server: String,
    response: UpstreamResponse,
) -> UpstreamResponse {
    Box::pin(async move {
        let answered = response.await;
        if let Ok(body) = &answered {
            context.param_headers().learn(&server, body);
        }
        answered
    })
}

/// Begins a session for a client of the older era.
async fn begin_session(
    context: &HttpContext,
    server: &str,
    principal: &Principal,
    id: Id,
    text: String,
    entry: &mut AuditEntry,
) -> Result<Response, HttpError> {
    let failed = |e: std::io::Error| {
        HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot begin a session: {e}"))
    };
    let session_id = Session::new_id().map_err(failed)?;
    let (peer, notifications) = context.connect(server, principal, &session_id)?;
    let session =
        Session::begin(session_id, principal.name.clone(), server.to_owned(), peer, notifications);
    context.add_session(session.clone())?;
    let answered = session.peer.request(&id, "initialize", text).await;
    let is_initialized = answered.as_ref().is_ok_and(|body| crate::raw::is_result(body));
    if is_initialized && answered.as_ref().is_ok_and(|body| is_agreed(body, batch::REVISION)) {
        session.enable_batches();
    }
    let mut response = answer(answered, &id, Era::Legacy, entry);
    if is_initialized {
        if let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION, value);
        }
    } else {
        context.end_session(&session);
    }
    Ok(response)
}

/// Whether the response to `initialize` names a revision.
fn is_agreed(body: &[u8], revision: &str) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let agreed = crate::raw::at_path(text, &["result", "protocolVersion"]);
    agreed.is_some_and(|span| text[span].trim_matches('"') == revision)
}

/// A request that waits for its response.
struct PendingCall {
    id: Id,
    era: Era,
    session: Option<Arc<Session>>,
    entry: AuditEntry,
}

impl PendingCall {
    fn in_session(mut self, session: Arc<Session>, method: String, text: String) -> PostAction {
        let Some(queue) = session.register(&self.id) else {
            self.entry.answered(CallOutcome::Refused, StatusCode::BAD_REQUEST, 0);
            let error = ErrorObject::duplicate_id();
            let error = HttpError::with_error(StatusCode::BAD_REQUEST, Some(self.id), error);
            return PostAction::Respond(error.into_response());
        };
        let guard = QueueGuard { session, id: self.id.clone() };
        let response: UpstreamResponse = Box::pin(async move {
            let answered = guard.session.peer.request(&guard.id, &method, text).await;
            drop(guard);
            answered
        });
        PostAction::Answer(self, response, Notifications::OfRequest(queue))
    }

    /// Responds with JSON, or with events if there are messages before the response. Dropping the
    /// future cancels the call.
    async fn answer(
        mut self,
        context: &HttpContext,
        who: &str,
        mut response: UpstreamResponse,
        mut notifications: Notifications,
    ) -> Response {
        let first = tokio::select! {
            biased;
            Some(first) = notifications.next() => first,
            answered = &mut response => {
                return answer(answered, &self.id, self.era, &mut self.entry);
            }
            () = context.until_revoked(who) => {
                drop(response);
                return answer(Err(revoked_error()), &self.id, self.era, &mut self.entry);
            }
        };
        let (number, stream) = match &self.session {
            Some(session) => session.open(),
            None => (SESSION_STREAM, Arc::<sse::EventStream>::default()),
        };
        stream.push(number, &first.text);
        let (events, context, who) = (stream.clone(), context.clone(), who.to_owned());
        let Self { id, session, mut entry, .. } = self;
        let task = tokio::spawn(async move {
            let mut revoked = std::pin::pin!(context.until_revoked(&who));
            let answered = loop {
                tokio::select! {
                    biased;
                    Some(notification) = notifications.next() => events.push(number, &notification.text),
                    answered = &mut response => break answered,
                    () = &mut revoked => {
                        break Err(revoked_error());
                    }
                }
            };
            let outcome = outcome(&answered);
            let body = answered.unwrap_or_else(|error| error.to_response(&id));
            entry.answered(outcome, StatusCode::OK, body.len());
            events.push(number, &String::from_utf8_lossy(&body));
            events.end();
        });
        let guard = ReaderGuard::new(stream.clone(), task.abort_handle(), session.is_some());
        sse::response(stream, None, guard)
    }
}

/// A request that receives the messages about it.
pub(super) struct QueueGuard {
    pub(super) session: Arc<Session>,
    pub(super) id: Id,
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        self.session.unregister(&self.id);
    }
}

/// Somebody reads a response that is sent as events. In the older era a client may disconnect and
/// resume.
pub(super) struct ReaderGuard {
    stream: Arc<sse::EventStream>,
    task: AbortHandle,
    resume_timeout: Option<Duration>,
}

impl ReaderGuard {
    /// The task of a response. A client can resume it in a session.
    pub(super) fn new(
        stream: Arc<sse::EventStream>,
        task: AbortHandle,
        is_resumable: bool,
    ) -> Self {
        Self { stream, task, resume_timeout: is_resumable.then_some(RESUME_TIMEOUT) }
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        let Some(timeout) = self.resume_timeout else { return self.task.abort() };
        if self.task.is_finished() {
            return;
        }
        let (stream, task) = (self.stream.clone(), self.task.clone());
        let reader = stream.reader();
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            if stream.reader() == reader {
                task.abort();
            }
        });
    }
}

pub(super) fn revoked_error() -> GatewayError {
    GatewayError::new(GatewayErrorKind::Ended, "the token was revoked")
}

pub(super) fn outcome(answered: &Result<Vec<u8>, GatewayError>) -> CallOutcome {
    match answered {
        Ok(body) => CallOutcome::of(body),
        Err(error) => CallOutcome::of_error(error),
    }
}

fn answer(
    answered: Result<Vec<u8>, GatewayError>,
    id: &Id,
    era: Era,
    entry: &mut AuditEntry,
) -> Response {
    let outcome = outcome(&answered);
    let (status, body) = match answered {
        Ok(body) => (standard::status(era, &body), body),
        Err(error) => (status_of(&error), error.to_response(id)),
    };
    entry.answered(outcome, status, body.len());
    json(status, body)
}

/// The stream of messages that belong to no request, or a stream to be resumed.
fn get(
    context: &HttpContext,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accepts.is_some_and(|accept| accept.contains("text/event-stream")) {
        let why = "a GET is answered with text/event-stream, which `Accept` must include";
        return Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, why));
    }
    let Some(session) = session_of(context, server, principal, headers)? else {
        // Without a session there is nothing to receive here.
        return Ok(not_allowed(METHODS_WITHOUT_SESSION));
    };
    let last = headers.get(LAST_EVENT).and_then(|last| last.to_str().ok());
    let (number, after) = match last.and_then(|last| last.split_once('-')) {
        Some((number, after)) => (number.parse().ok(), after.parse().ok()),
        None => (Some(SESSION_STREAM), None),
    };
    let stream = number.and_then(|number| session.stream(number));
    let stream = stream
        .ok_or_else(|| HttpError::new(StatusCode::NOT_FOUND, "this stream no longer exists"))?;
    Ok(sse::response(stream, after, session))
}
