//! Streamable HTTP: one message per POST, answered as JSON, or as a stream of events if there are
//! messages before the response.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::{ErrorObject, Id, Incoming, Message};
use tokio::task::AbortHandle;

use super::answer::{Refused, empty, json};
use super::guard::Principal;
use super::inbox::Heard;
use super::note::{Note, Outcome};
use super::sessions::{COMMON, Session};
use super::state::{OWN, Shared, status_of};
use super::{headers as standard, sse};
use crate::relay::Era;
use crate::{Refusal, RefusalKind};

/// How long a client that disconnected may take to resume its response.
const RESUME_PATIENCE: Duration = Duration::from_secs(30);

/// How long a body may take to arrive: enough for the longest over a slow connection.
const BODY_PATIENCE: Duration = Duration::from_secs(120);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A call in progress.
type Call = std::pin::Pin<Box<dyn Future<Output = Result<Vec<u8>, Refusal>> + Send>>;

/// `/mcp`.
pub(super) async fn own(State(shared): State<Shared>, request: Request<Body>) -> Response {
    serve(shared, OWN, request).await
}

/// `/servers/{name}/mcp`.
pub(super) async fn server(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    serve(shared, &name, request).await
}

pub(super) async fn direct<B: Readable>(
    shared: Shared,
    server: String,
    request: Request<B>,
) -> Result<Response, Infallible> {
    Ok(serve(shared, &server, request).await)
}

/// The server that a path names, if that can be told without a route.
pub(super) fn named(path: &str) -> Option<&str> {
    if path == "/mcp" {
        return Some(OWN);
    }
    let name = path.strip_prefix("/servers/")?.strip_suffix("/mcp")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

/// A request body.
pub(super) trait Readable:
    hyper::body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send
{
}

impl<B: hyper::body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send> Readable for B {}

async fn serve<B: Readable>(shared: Shared, server: &str, request: Request<B>) -> Response {
    let mut note = Note::begin(&shared, server);
    match serve_noted(&shared, server, request, &mut note).await {
        Ok(response) => response,
        Err(refused) => {
            note.answered(Outcome::Refused, refused.status(), 0);
            refused.into_response()
        }
    }
}

async fn serve_noted<B: Readable>(
    shared: &Shared,
    server: &str,
    request: Request<B>,
    note: &mut Note,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let principal = shared.admit(&parts.uri, &parts.headers)?;
    note.by(&principal.name);
    let response = match parts.method {
        Method::POST => {
            let body = read(shared, body, &parts.headers).await?;
            let next = post(shared, server, &principal, &parts.headers, &body, note)?;
            // Dropped before the response is awaited: the connection reads the next request into
            // the same buffer.
            drop((parts, body));
            return next.finish(shared, server, &principal, note).await;
        }
        Method::GET => get(shared, server, &principal, &parts.headers)?,
        Method::DELETE => {
            let session = named_session(shared, server, &principal, &parts.headers)?;
            let session = session.ok_or_else(no_session)?;
            shared.end_session(&session);
            empty(StatusCode::NO_CONTENT)
        }
        _ => empty(StatusCode::METHOD_NOT_ALLOWED),
    };
    note.asks(parts.method.as_str(), "");
    let served = response.status().is_success();
    let outcome = if served { Outcome::Ok } else { Outcome::Refused };
    note.answered(outcome, response.status(), 0);
    Ok(response)
}

/// Reads a JSON body of limited size.
pub(super) async fn read<B: Readable>(
    shared: &Shared,
    body: B,
    headers: &HeaderMap,
) -> Result<Bytes, Refused> {
    let limit = shared.doors().limits.body_bytes;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.trim_start().starts_with("application/json")) {
        let why = "the body must be application/json";
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let too_large = || {
        let why = format!("the body exceeds {limit} bytes");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large());
    }
    let collected = Limited::new(body, limit).collect();
    match shared.body_timers().timeout(BODY_PATIENCE, collected).await {
        Some(Ok(collected)) => Ok(collected.to_bytes()),
        Some(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Some(Err(_)) => Err(Refused::new(StatusCode::BAD_REQUEST, "the body is incomplete")),
        None => {
            let why = format!("the body did not arrive within {BODY_PATIENCE:?}");
            Err(Refused::new(StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

fn named_session(
    shared: &Shared,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Option<Arc<Session>>, Refused> {
    let Some(id) = headers.get(SESSION) else { return Ok(None) };
    let id = id.to_str().unwrap_or_default();
    shared.session(id, principal, server).map(Some)
}

fn no_session() -> Refused {
    Refused::new(
        StatusCode::BAD_REQUEST,
        "`Mcp-Session-Id` is missing; the response to initialize contains it",
    )
}

/// What remains to be done after a request was read.
enum Next {
    /// Nothing.
    Respond(Response),
    Answer(Exchange, Call, Heard),
    BeginSession(Id, String),
}

impl Next {
    async fn finish(
        self,
        shared: &Shared,
        server: &str,
        principal: &Principal,
        note: &mut Note,
    ) -> Result<Response, Refused> {
        match self {
            Self::Respond(response) => Ok(response),
            Self::Answer(exchange, call, heard) => {
                Ok(exchange.answer(shared, &principal.name, call, heard).await)
            }
            Self::BeginSession(id, text) => {
                begin_session(shared, server, principal, id, text, note).await
            }
        }
    }
}

fn post(
    shared: &Shared,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
    body: &[u8],
    note: &mut Note,
) -> Result<Next, Refused> {
    let bad = |id: Option<Id>, error: ErrorObject| {
        Refused::with_error(StatusCode::BAD_REQUEST, id, error)
    };
    let message = match Incoming::parse(body) {
        Ok(Incoming::One(message)) => message,
        Ok(Incoming::Batch(_)) => {
            let error = ErrorObject::new(INVALID_REQUEST, "batches are not supported over HTTP");
            return Err(bad(None, error));
        }
        Err(malformed) => return Err(bad(malformed.id, malformed.error)),
    };
    let not_text = |_| bad(None, ErrorObject::parse_error("not UTF-8"));
    let text = std::str::from_utf8(body).map_err(not_text)?;
    match &message {
        Message::Request { method, .. } | Message::Notification { method, .. } => {
            note.asks(method, text);
        }
        Message::Response { .. } => note.asks("response", text),
    }
    let session = named_session(shared, server, principal, headers)?;
    let (id, method) = match message {
        Message::Request { id, method, .. } => (id, method),
        other => {
            if let Some(session) = session {
                session.talk.tell(&other, text);
            }
            note.answered(Outcome::Ok, StatusCode::ACCEPTED, 0);
            return Ok(Next::Respond(empty(StatusCode::ACCEPTED)));
        }
    };
    let era = Era::of(text);
    let mut said = standard::check(headers, era, &method, text);
    if era == Era::Modern && method == "tools/call" {
        said = said.and_then(|()| shared.marked().check(server, headers, text));
    }
    said.map_err(|error| bad(Some(id.clone()), error))?;
    let (method, text) = (method.into_owned(), text.to_owned());
    if let Some(session) = session.filter(|_| era == Era::Legacy) {
        let exchange = Exchange { id, era, session: Some(session.clone()), note: note.take() };
        return Ok(exchange.in_session(session, method, text));
    }
    if method == "initialize" && era == Era::Legacy {
        return Ok(Next::BeginSession(id, text));
    }
    let (talk, told) = shared.talk(server, principal, "")?;
    let asked = id.clone();
    let lists = era == Era::Modern && method == "tools/list";
    let mut call: Call = Box::pin(async move { talk.ask(&asked, &method, text).await });
    if lists {
        call = learning(shared.clone(), server.to_owned(), call);
    }
    let exchange = Exchange { id, era, session: None, note: note.take() };
    Ok(Next::Answer(exchange, call, Heard::OfLine(told)))
}

/// A call whose response tells which headers later calls must have.
fn learning(shared: Shared, server: String, call: Call) -> Call {
    Box::pin(async move {
        let answered = call.await;
        if let Ok(body) = &answered {
            shared.marked().learn(&server, body);
        }
        answered
    })
}

/// Begins a session for a client of the older era.
async fn begin_session(
    shared: &Shared,
    server: &str,
    principal: &Principal,
    id: Id,
    text: String,
    note: &mut Note,
) -> Result<Response, Refused> {
    let broken = |e: std::io::Error| {
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot begin a session: {e}"))
    };
    let session_id = Session::new_id().map_err(broken)?;
    let (talk, told) = shared.talk(server, principal, &session_id)?;
    let session = Session::begin(session_id, principal.name.clone(), server.to_owned(), talk, told);
    shared.keep(session.clone())?;
    let answered = session.talk.ask(&id, "initialize", text).await;
    let greeted = answered.as_ref().is_ok_and(|body| crate::raw::is_result(body));
    let mut response = answer(answered, &id, Era::Legacy, note);
    if greeted {
        if let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION, value);
        }
    } else {
        shared.end_session(&session);
    }
    Ok(response)
}

/// A request that waits for its response.
struct Exchange {
    id: Id,
    era: Era,
    session: Option<Arc<Session>>,
    note: Note,
}

impl Exchange {
    fn in_session(mut self, session: Arc<Session>, method: String, text: String) -> Next {
        let Some(inbox) = session.listen(&self.id) else {
            self.note.answered(Outcome::Refused, StatusCode::BAD_REQUEST, 0);
            let error = ErrorObject::duplicate_id();
            let refused = Refused::with_error(StatusCode::BAD_REQUEST, Some(self.id), error);
            return Next::Respond(refused.into_response());
        };
        let listening = Listening { session, id: self.id.clone() };
        let call: Call = Box::pin(async move {
            let answer = listening.session.talk.ask(&listening.id, &method, text).await;
            drop(listening);
            answer
        });
        Next::Answer(self, call, Heard::OfRequest(inbox))
    }

    /// Responds with JSON, or with events if there are messages before the response. Dropping the
    /// future cancels the call.
    async fn answer(
        mut self,
        shared: &Shared,
        who: &str,
        mut call: Call,
        mut heard: Heard,
    ) -> Response {
        let first = tokio::select! {
            biased;
            Some(first) = heard.next() => first,
            answered = &mut call => {
                return answer(answered, &self.id, self.era, &mut self.note);
            }
            () = shared.until_revoked(who) => {
                drop(call);
                return answer(Err(by_revocation()), &self.id, self.era, &mut self.note);
            }
        };
        let (number, stream) = match &self.session {
            Some(session) => session.open(),
            None => (COMMON, Arc::<sse::Stream>::default()),
        };
        stream.push(number, &first.text);
        let (events, shared, who) = (stream.clone(), shared.clone(), who.to_owned());
        let Self { id, session, mut note, .. } = self;
        let task = tokio::spawn(async move {
            let mut revoked = std::pin::pin!(shared.until_revoked(&who));
            let answered = loop {
                tokio::select! {
                    biased;
                    Some(told) = heard.next() => events.push(number, &told.text),
                    answered = &mut call => break answered,
                    () = &mut revoked => {
                        break Err(by_revocation());
                    }
                }
            };
            let outcome = outcome(&answered);
            let body = answered.unwrap_or_else(|refusal| refusal.to_answer(&id));
            note.answered(outcome, StatusCode::OK, body.len());
            events.push(number, &String::from_utf8_lossy(&body));
            events.end();
        });
        let patience = session.map(|_| RESUME_PATIENCE);
        let guard = Reader { stream: stream.clone(), task: task.abort_handle(), patience };
        sse::response(stream, None, guard)
    }
}

/// A request that receives the messages about it.
struct Listening {
    session: Arc<Session>,
    id: Id,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.forget(&self.id);
    }
}

/// Somebody reads a response that is sent as events. In the older era a client may disconnect and
/// resume.
struct Reader {
    stream: Arc<sse::Stream>,
    task: AbortHandle,
    patience: Option<Duration>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(patience) = self.patience else { return self.task.abort() };
        if self.task.is_finished() {
            return;
        }
        let (stream, task) = (self.stream.clone(), self.task.clone());
        let reader = stream.reader();
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            if stream.reader() == reader {
                task.abort();
            }
        });
    }
}

fn by_revocation() -> Refusal {
    Refusal::new(RefusalKind::Ended, "the token was revoked")
}

fn outcome(answered: &Result<Vec<u8>, Refusal>) -> Outcome {
    match answered {
        Ok(body) => Outcome::of(body),
        Err(refusal) => Outcome::of_refusal(refusal),
    }
}

fn answer(answered: Result<Vec<u8>, Refusal>, id: &Id, era: Era, note: &mut Note) -> Response {
    let outcome = outcome(&answered);
    let (status, body) = match answered {
        Ok(body) => (standard::status(era, &body), body),
        Err(refusal) => (status_of(&refusal), refusal.to_answer(id)),
    };
    note.answered(outcome, status, body.len());
    json(status, body)
}

/// The stream of messages that belong to no request, or a stream to be resumed.
fn get(
    shared: &Shared,
    server: &str,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accepts.is_some_and(|accept| accept.contains("text/event-stream")) {
        let why = "a GET is answered with text/event-stream, which `Accept` must include";
        return Err(Refused::new(StatusCode::NOT_ACCEPTABLE, why));
    }
    let Some(session) = named_session(shared, server, principal, headers)? else {
        // Without a session there is nothing to receive here.
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    };
    let last = headers.get(LAST_EVENT).and_then(|last| last.to_str().ok());
    let (number, after) = match last.and_then(|last| last.split_once('-')) {
        Some((number, after)) => (number.parse().ok(), after.parse().ok()),
        None => (Some(COMMON), None),
    };
    let stream = number.and_then(|number| session.stream(number));
    let stream = stream
        .ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "this stream no longer exists"))?;
    Ok(sse::response(stream, after, session))
}
