//! Servers elsewhere, that speak Streamable HTTP. Each line for such a server becomes a POST, and what
//! it answers, as JSON or as events, becomes lines again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming as Body};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use patterm_wire::{DEFAULT_MESSAGE_LIMIT, Id, Incoming, Message};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Backend, Channel, Later, Life};
use crate::raw;
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::Era;

/// Bytes between the session and this place before one of them waits.
const PIPE_BYTES: usize = 256 << 10;

/// How long a connection may take to be made.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// How long what expects no answer may take to be taken: what follows waits for it.
const TELL_PATIENCE: Duration = Duration::from_secs(10);

/// How long the farewell may take.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The pause before a stream that broke off is taken up again, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often the stream of one answer is taken up again.
const RESUMES: u32 = 5;

/// What of a refusal's body is told.
const TOLD_BYTES: usize = 500;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How requests go out.
enum Way {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Way {
    fn new(secure: bool) -> std::io::Result<Self> {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(CONNECT_PATIENCE));
        plain.set_nodelay(true);
        plain.enforce_http(!secure);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new());
        if !secure {
            return Ok(Self::Plain(client.build(plain)));
        }
        // The roots that the machine trusts: those of a company among them.
        let tls = HttpsConnectorBuilder::new().with_native_roots()?.https_only();
        Ok(Self::Tls(client.build(tls.enable_http1().wrap_connector(plain))))
    }

    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

/// A server elsewhere.
#[derive(Clone)]
pub struct Remote {
    /// Where it is: `https://…` or `http://…`.
    pub url: String,
    /// What is sent to it with every request; tokens are among it.
    pub headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Remote").field("url", &self.url).field("headers", &names).finish()
    }
}

impl Backend for Remote {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let link = Link::new(self);
        Box::pin(async move {
            let link = Arc::new(link?);
            let (input, lines) = duplex(PIPE_BYTES);
            let (output, out) = duplex(PIPE_BYTES);
            let (over, ended) = watch::channel(None);
            let life = RemoteLife { link: link.clone(), ended };
            tokio::spawn(async move {
                let out = Arc::new(tokio::sync::Mutex::new(out));
                let how = tokio::select! {
                    () = link.clone().serve(lines, out) => "closed its input".to_owned(),
                    () = link.end.cancelled() => link.why(),
                };
                link.farewell().await;
                over.send_replace(Some(how));
            });
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(tokio::io::empty()),
                pid: None,
                life: Box::new(life),
            })
        })
    }
}

struct RemoteLife {
    link: Arc<Link>,
    ended: watch::Receiver<Option<String>>,
}

impl Life for RemoteLife {
    fn ended(&self) -> Later<String> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
            how.unwrap_or_else(|| "ended".into())
        })
    }

    fn end(&self) -> Later<()> {
        let (link, mut ended) = (self.link.clone(), self.ended.clone());
        Box::pin(async move {
            link.end.cancel();
            let _ = timeout(2 * END_PATIENCE, ended.wait_for(Option::is_some)).await;
        })
    }
}

/// The way to the server.
struct Link {
    uri: Uri,
    headers: HeaderMap,
    client: Way,
    state: Mutex<State>,
    end: CancellationToken,
}

#[derive(Default)]
struct State {
    /// The session of the older era, and the revision that was agreed on.
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Requests that are on their way, by id.
    open: HashMap<Id, JoinHandle<()>>,
    /// Why it ended by itself.
    why: Option<String>,
    /// Somebody follows what belongs to no request.
    follows: bool,
}

type Out = Arc<tokio::sync::Mutex<DuplexStream>>;

impl Link {
    fn new(remote: &Remote) -> Result<Self, Refusal> {
        let bad = |why: String| {
            let message = format!("`{}` cannot be used: {why}", remote.url);
            Refusal::new(RefusalKind::Unavailable, message)
        };
        let uri: Uri = remote.url.parse().map_err(|e| bad(format!("it is no address ({e})")))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("it begins with neither https:// nor http://".into())),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &remote.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| bad(format!("`{name}` is no name of a header")))?;
            // The value may be a token: it is not told.
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| bad(format!("the header `{name}` has a value that none can have")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = Way::new(secure).map_err(|e| bad(format!("no certificates to trust: {e}")))?;
        let (state, end) = (Mutex::default(), CancellationToken::new());
        Ok(Self { uri, headers, client, state, end })
    }

    /// Serves lines until there are no more.
    async fn serve(self: Arc<Self>, lines: DuplexStream, out: Out) {
        let mut lines = BufReader::new(lines).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(Incoming::One(message)) = Incoming::parse(line.as_bytes()) else { continue };
            match message {
                Message::Request { id, method, .. } => {
                    let call = self.clone().call(id.clone(), method.to_string(), line.clone());
                    let (link, out, of) = (self.clone(), out.clone(), id.clone());
                    // The first word must be answered before anything else is said.
                    let first = method == "initialize";
                    let task = tokio::spawn(async move {
                        call.run(&out).await;
                        link.state().open.remove(&of);
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
                    self.tell(&line).await;
                    if method == "notifications/initialized" {
                        self.follow(&out);
                    }
                }
                Message::Response { .. } => self.tell(&line).await,
            }
        }
    }

    fn call(self: Arc<Self>, id: Id, method: String, line: String) -> Call {
        Call { link: self, id, method, line, last: None }
    }

    /// Whoever does not wait any more hangs up: in the newer era that is all that is said.
    fn cancel(&self, line: &str) {
        let id = raw::at_path(line, &["params", "requestId"]);
        let id = id.and_then(|span| Id::from_json(&line[span]));
        if let Some(task) = id.and_then(|id| self.state().open.remove(&id)) {
            task.abort();
        }
    }

    /// Sends what expects no answer.
    async fn tell(&self, line: &str) {
        let modern = self.state().session.is_none() && self.state().version.is_none();
        // The newer era has no session to tell anything.
        if modern && Era::of(line) != Era::Modern {
            return;
        }
        let Ok(request) = self.request(Method::POST, line) else { return };
        let told = timeout(TELL_PATIENCE, self.client.request(request)).await;
        if let Ok(Ok(response)) = told
            && response.status() == StatusCode::NOT_FOUND
        {
            self.lost();
        }
    }

    /// A request with all its headers.
    fn request(&self, method: Method, line: &str) -> Result<Request<Full<Bytes>>, String> {
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

    /// Follows what belongs to no request, where the server has such a stream.
    fn follow(self: &Arc<Self>, out: &Out) {
        if std::mem::replace(&mut self.state().follows, true) {
            return;
        }
        let (link, out) = (self.clone(), out.clone());
        let end = self.end.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = link.follow_all(&out) => {}
                () = end.cancelled() => {}
            }
        });
    }

    async fn follow_all(&self, out: &Out) {
        let (mut last, mut pause) = (None, FIRST_PAUSE);
        loop {
            let answer = self.resume(last.as_ref()).await;
            match answer {
                Ok(response) if is_events(&response) => {
                    let mut events = Events::default();
                    let heard = events.read(response.into_body(), out, None).await;
                    last = events.last.or(last);
                    if heard.is_ok() {
                        pause = FIRST_PAUSE;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => return self.lost(),
                // It has none.
                Ok(response) if response.status().is_client_error() => return,
                Ok(_) | Err(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A stream, after the last event that was heard of it.
    async fn resume(&self, last: Option<&HeaderValue>) -> Result<Response<Body>, String> {
        let mut request = self.request(Method::GET, "")?;
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.clone());
        }
        self.client.request(request).await.map_err(|e| reason(&e))
    }

    /// The server knows nothing of the session any more: the next call begins another.
    fn lost(&self) {
        let mut state = self.state();
        if state.session.take().is_some() {
            state.why = Some("has forgotten the session".into());
            drop(state);
            self.end.cancel();
        }
    }

    fn why(&self) -> String {
        self.state().why.clone().unwrap_or_else(|| "was ended".into())
    }

    /// Hangs up, and ends the session where there is one.
    async fn farewell(&self) {
        self.end.cancel();
        for (_, task) in self.state().open.drain() {
            task.abort();
        }
        if self.state().session.is_some()
            && let Ok(request) = self.request(Method::DELETE, "")
        {
            let _ = timeout(END_PATIENCE, self.client.request(request)).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on its way.
struct Call {
    link: Arc<Link>,
    id: Id,
    method: String,
    line: String,
    last: Option<HeaderValue>,
}

impl Call {
    async fn run(mut self, out: &Out) {
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
            return match body.trim_ascii().is_empty() {
                true => Err("answered nothing".into()),
                false => {
                    write(out, &body).await;
                    Ok(())
                }
            };
        }
        let mut response = response;
        for _ in 0..=RESUMES {
            let mut events = Events { last: self.last.take(), ..Events::default() };
            let heard = events.read(response.into_body(), out, Some(&self.id)).await;
            self.last = events.last;
            if let Ok(Some(answer)) = heard {
                self.note_version(&answer);
                return Ok(());
            }
            if self.last.is_none() {
                break;
            }
            sleep(FIRST_PAUSE).await;
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
        let told: String = match raw::at_path(&text, &["error", "message"]) {
            Some(span) => serde_json::from_str(&text[span]).unwrap_or_default(),
            None => text.trim().to_owned(),
        };
        let told: String = told.chars().filter(|c| !c.is_control()).take(TOLD_BYTES).collect();
        let told = if told.is_empty() { told } else { format!(": {told}") };
        Err(format!("answered {status}{told}{hint}"))
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

/// What stands in the headers of the stateless era, as the body says it.
fn stateless_headers(headers: &mut HeaderMap, line: &str) {
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

/// A value that no header can say as it is goes as `=?base64?…?=`.
fn plain(value: String) -> String {
    let sayable = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    match sayable {
        true => value,
        false => format!("=?base64?{}?=", patterm_wire::base64::encode(value.as_bytes())),
    }
}

/// The events of one stream.
#[derive(Default)]
struct Events {
    last: Option<HeaderValue>,
    line: Vec<u8>,
    data: Vec<u8>,
}

impl Events {
    /// Passes on what comes, until the stream ends or the answer to this request was there.
    async fn read(
        &mut self,
        mut body: Body,
        out: &Out,
        of: Option<&Id>,
    ) -> Result<Option<Vec<u8>>, String> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| reason(&e))?;
            let Some(bytes) = frame.data_ref() else { continue };
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(part);
                if self.line.len() + self.data.len() > DEFAULT_MESSAGE_LIMIT {
                    return Err("sent an event that is too long".into());
                }
                if !part.ends_with(b"\n") {
                    continue;
                }
                let line = std::mem::take(&mut self.line);
                let Some(event) = self.take(line.trim_ascii_end()) else { continue };
                write(out, &event).await;
                if of.is_some_and(|id| answers(&event, id)) {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    /// Takes a line; an event is over with an empty one.
    fn take(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].trim_ascii_start()),
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                if !self.data.is_empty() {
                    self.data.push(b' ');
                }
                self.data.extend_from_slice(value);
            }
            b"id" => self.last = HeaderValue::from_bytes(value).ok(),
            _ => {}
        }
        None
    }
}

/// Whether a message answers this request.
fn answers(message: &[u8], id: &Id) -> bool {
    match Incoming::parse(message) {
        Ok(Incoming::One(Message::Response { id: Some(of), .. })) => of == *id,
        _ => false,
    }
}

fn is_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    response.status().is_success()
        && kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

async fn collect(body: Body) -> Result<Vec<u8>, String> {
    let body = Limited::new(body, DEFAULT_MESSAGE_LIMIT).collect().await;
    body.map(|body| body.to_bytes().to_vec()).map_err(|e| format!("broke off: {e}"))
}

/// Writes a message as one line: JSON has no line ends that mean anything.
async fn write(out: &Out, message: &[u8]) {
    let mut line: Vec<u8> = message
        .iter()
        .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
        .collect();
    line.push(b'\n');
    // A session that is gone reads nothing any more.
    let _ = out.lock().await.write_all(&line).await;
}

/// Why a request failed, down to the innermost reason.
fn reason(error: &dyn std::error::Error) -> String {
    let (mut told, mut next) = (error.to_string(), error.source());
    while let Some(inner) = next {
        let inner_text = inner.to_string();
        if !told.ends_with(&inner_text) {
            told = format!("{told}: {inner_text}");
        }
        next = inner.source();
    }
    told
}
