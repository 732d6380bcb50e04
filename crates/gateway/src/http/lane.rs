//! A connection of HTTP/1.1. A plain POST is read and answered here: most requests are calls of tools,
//! and hyper's general machinery costs more than relaying them. Every head is read strictly before
//! anything is done with it; an ambiguous one is refused, and anything else is handed to hyper with
//! the bytes read so far, for one request: then the connection is closed, so that no head bypasses
//! the strict reader.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::{BodyExt, Full};
use hyper::body::Body as _;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::context::HttpContext;
use super::head::{self, Head, Parsed};
use super::known::Known;
use super::listener::{dispatch, hand_over};
use super::response::{HttpError, append_number};
use super::usual::{Answered, Heard, InFlight};

/// The longest body that is read here. Longer ones must not be buffered before their caller is
/// admitted.
const MOST_BODY: usize = 64 << 10;

/// Bytes that are read ahead of the request being answered.
const MOST_BYTES: usize = MOST_BODY + head::MOST_BYTES;

/// Bytes per read, and the least room for one.
const READ_BYTES: usize = 8 << 10;
const LEAST_ROOM: usize = 2 << 10;

/// A response body up to this length is written together with its head.
const TOGETHER: usize = 64 << 10;

/// After a refusal: how long its client may take to close the connection, and how often its bytes are
/// read until then. Together they are more than a client sends that waits for responses.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;

const AMBIGUOUS: &str = "the length of the body is ambiguous: send either one `Content-Length` or one \
                         `Transfer-Encoding`, not both";
const TOO_LONG: &str = "the head of the request is too long: at most 16 KiB and 100 headers";

/// What to do after a request.
enum Next {
    Continue,
    Close,
    /// hyper serves the next request.
    HandOver,
}

/// Serves a connection until it ends.
pub(super) async fn serve(stream: TcpStream, context: HttpContext, end: CancellationToken) {
    let mut lane = Lane {
        stream,
        read: Vec::new(),
        filled: 0,
        written: Vec::new(),
        timer: None,
        known: Known::default(),
        context,
        now: now(),
    };
    loop {
        match lane.serve_one(&end).await {
            Next::Continue if end.is_cancelled() => return,
            Next::Continue => {}
            Next::Close => return,
            Next::HandOver => break,
        }
    }
    lane.read.truncate(lane.filled);
    // Its client's calls end with it.
    let Lane { stream, read, context, .. } = lane;
    Box::pin(hand_over(stream, read, context, end)).await;
}

struct Lane {
    stream: TcpStream,
    /// What was read and not answered yet: the first `filled` bytes.
    read: Vec<u8>,
    filled: usize,
    /// A reused buffer for responses.
    written: Vec<u8>,
    /// One timer for all deadlines; it is only reset when it fires, or if it would fire too late.
    timer: Option<Pin<Box<Sleep>>>,
    known: Known,
    context: HttpContext,
    /// The time at which the last request began to arrive, or was answered.
    now: Instant,
}

/// How a wait ended.
enum Waited<T> {
    Done(T),
    Late,
    /// The client closed the connection.
    Gone,
}

impl Lane {
    async fn serve_one(&mut self, end: &CancellationToken) -> Next {
        let timeout = self.context.config().limits.header_timeout;
        let mut deadline = self.now + timeout;
        // The length of the request, once its head was read, and what was parsed in vain before.
        let (mut whole, mut parsed) = (None, 0);
        let head = loop {
            let is_worth_parsing = match whole {
                Some(whole) => self.filled >= whole,
                None if parsed == 0 || self.filled >= head::MOST_BYTES => self.filled > 0,
                None => head::may_end(&self.read[..self.filled], parsed),
            };
            if is_worth_parsing {
                match head::parse(&self.read[..self.filled]) {
                    Parsed::Partial => {}
                    Parsed::Unusual => return Next::HandOver,
                    Parsed::Ambiguous => {
                        return self.refuse(StatusCode::BAD_REQUEST, AMBIGUOUS).await;
                    }
                    Parsed::TooLong => {
                        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                        return self.refuse(status, TOO_LONG).await;
                    }
                    Parsed::Post(head) if head.body > self.most_body() => return Next::HandOver,
                    Parsed::Post(head) if self.filled >= head.length + head.body => break head,
                    Parsed::Post(head) => whole = Some(head.length + head.body),
                }
            }
            parsed = self.filled;
            let is_idle = self.filled == 0;
            match self.wait_for_bytes(deadline, || is_idle && end.is_cancelled()).await {
                // It was idle until now.
                Waited::Done(()) if is_idle => {
                    self.now = now();
                    deadline = self.now + timeout;
                }
                Waited::Done(()) => {}
                // A slow body: whether it may take longer depends on its caller.
                Waited::Late if whole.is_some() => return Next::HandOver,
                Waited::Late | Waited::Gone => return Next::Close,
            }
        };
        let (whole, closes) = (head.length + head.body, head.closes);
        let request = &self.read[..whole];
        let started = self.now;
        let usual = InFlight::begin(&self.context, &mut self.known, &head, request, started);
        let answered = match usual {
            Some(call) => self.answer_usual(call, closes).await,
            None => {
                // hyper says what is wrong with it.
                let Some(request) = general(&head, request) else { return Next::HandOver };
                self.consume(whole);
                return self.answer_general(request, closes).await;
            }
        };
        self.consume(whole);
        answered
    }

    fn most_body(&self) -> usize {
        MOST_BODY.min(self.context.config().limits.body_bytes)
    }

    async fn answer_usual(&mut self, mut call: InFlight, closes: bool) -> Next {
        let deadline = call.deadline();
        let heard = poll_fn(|context| call.poll(context));
        let answered = match self.wait(Some(deadline), heard).await {
            Waited::Done(Heard::Answer(answered)) => answered,
            Waited::Done(Heard::Event(first)) => {
                return self.answer_events(call, &first, closes).await;
            }
            Waited::Late => Answered::Late,
            Waited::Gone => return Next::Close,
        };
        self.now = now();
        let (status, body) = call.finish(answered, self.now);
        drop(call);
        self.written.clear();
        write_status(&mut self.written, status);
        self.written.extend_from_slice(b"content-type: application/json\r\n");
        write_length(&mut self.written, body.len());
        self.write_whole(&body, closes).await
    }

    /// Answers a call as events. If the answer is there already, everything is written at once.
    async fn answer_events(&mut self, mut call: InFlight, first: &str, closes: bool) -> Next {
        let events = call.open_stream();
        events.push(first);
        let drained = poll_fn(|context| {
            loop {
                match call.poll(context) {
                    Poll::Ready(Heard::Event(text)) => events.push(&text),
                    Poll::Ready(Heard::Answer(answered)) => return Poll::Ready(Some(answered)),
                    Poll::Pending => return Poll::Ready(None),
                }
            }
        });
        let Some(answered) = drained.await else {
            let response = call.follow(events);
            return self.write_response(response, closes).await;
        };
        self.now = now();
        call.finish_stream(&events, answered, self.now);
        let body = events.read_all();
        self.written.clear();
        write_status(&mut self.written, StatusCode::OK);
        self.written
            .extend_from_slice(b"content-type: text/event-stream\r\ncache-control: no-store\r\n");
        write_length(&mut self.written, body.len());
        self.write_whole(&body, closes).await
    }

    /// Serves a request on the general path.
    async fn answer_general(&mut self, request: Request<Full<Bytes>>, closes: bool) -> Next {
        let context = self.context.clone();
        let response = Box::pin(dispatch(context, request));
        let Waited::Done(Ok(response)) = self.wait(None, response).await else {
            return Next::Close;
        };
        self.write_response(response, closes).await
    }

    async fn write_response(&mut self, response: Response<Body>, closes: bool) -> Next {
        let (parts, mut body) = response.into_parts();
        self.written.clear();
        write_status(&mut self.written, parts.status);
        for (name, value) in &parts.headers {
            write_header(&mut self.written, name.as_str(), value.as_bytes());
        }
        let next = match body.size_hint().exact() {
            None => self.write_chunks(body, closes).await,
            Some(length) => {
                write_length(&mut self.written, usize::try_from(length).unwrap_or(usize::MAX));
                let Ok(whole) = (&mut body).collect().await else { return Next::Close };
                self.write_whole(&whole.to_bytes(), closes).await
            }
        };
        // It may have taken any time.
        self.now = now();
        next
    }

    /// Writes the end of the head, and the body.
    async fn write_whole(&mut self, body: &[u8], closes: bool) -> Next {
        self.write_end(closes);
        let together = body.len() <= TOGETHER;
        if together {
            self.written.extend_from_slice(body);
        }
        let mut done = self.stream.write_all(&self.written).await;
        if !together && done.is_ok() {
            done = self.stream.write_all(body).await;
        }
        if done.is_err() || closes { Next::Close } else { Next::Continue }
    }

    /// Writes a body of unknown length, as its parts come.
    async fn write_chunks(&mut self, mut body: Body, closes: bool) -> Next {
        self.written.extend_from_slice(b"transfer-encoding: chunked\r\n");
        self.write_end(closes);
        loop {
            // What is there already is written together.
            let ready = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(frame) => Poll::Ready(Some(frame)),
                Poll::Pending => Poll::Ready(None),
            });
            let frame = match ready.await {
                Some(frame) => frame,
                None => {
                    if self.flush().await.is_err() {
                        return Next::Close;
                    }
                    let Waited::Done(frame) = self.wait(None, body.frame()).await else {
                        return Next::Close;
                    };
                    frame
                }
            };
            match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
                Some(Ok(Ok(data))) if !data.is_empty() => {
                    self.written.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                    self.written.extend_from_slice(&data);
                    self.written.extend_from_slice(b"\r\n");
                    if self.written.len() >= TOGETHER && self.flush().await.is_err() {
                        return Next::Close;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) => return Next::Close,
                None => break,
            }
        }
        self.written.extend_from_slice(b"0\r\n\r\n");
        let done = self.flush().await;
        if done.is_err() || closes { Next::Close } else { Next::Continue }
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        let done = self.stream.write_all(&self.written).await;
        self.written.clear();
        done
    }

    fn write_end(&mut self, closes: bool) {
        if closes {
            self.written.extend_from_slice(b"connection: close\r\n");
        }
        self.written.extend_from_slice(b"date: ");
        write_date(&mut self.written);
        self.written.extend_from_slice(b"\r\n\r\n");
    }

    /// Refuses a request whose end is not certain. What follows it is not looked at.
    async fn refuse(&mut self, status: StatusCode, why: &str) -> Next {
        let response = HttpError::new(status, why).into_response();
        let _ = self.write_response(response, true).await;
        self.linger().await;
        Next::Close
    }

    /// Reads what the client has sent already: closing a connection with unread bytes resets it, and
    /// the client might lose the response.
    async fn linger(&mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let deadline = now() + LINGER_TIMEOUT;
        for _ in 0..LINGER_READS {
            self.filled = 0;
            let Waited::Done(()) = self.wait_for_bytes(deadline, || false).await else { return };
        }
    }

    /// Forgets a request that was answered.
    fn consume(&mut self, bytes: usize) {
        self.read.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        // An idle connection keeps little.
        if self.filled == 0 && self.read.len() > READ_BYTES {
            self.read.truncate(READ_BYTES);
            self.read.shrink_to_fit();
        }
        self.written.clear();
        self.written.shrink_to(READ_BYTES);
    }

    /// Reads more bytes, unless none are wanted any more.
    async fn wait_for_bytes(&mut self, deadline: Instant, stops: impl Fn() -> bool) -> Waited<()> {
        poll_fn(|context| {
            match self.poll_read(context) {
                Poll::Ready(true) => return Poll::Ready(Waited::Done(())),
                Poll::Ready(false) => return Poll::Ready(Waited::Gone),
                Poll::Pending if stops() => return Poll::Ready(Waited::Gone),
                Poll::Pending => {}
            }
            self.poll_timer(deadline, context).map(|()| Waited::Late)
        })
        .await
    }

    /// Waits for something while the client is there. Requests that come meanwhile are kept.
    async fn wait<F: Future>(&mut self, deadline: Option<Instant>, future: F) -> Waited<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Waited::Done(output));
            }
            while self.filled < MOST_BYTES {
                match self.poll_read(context) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(Waited::Gone),
                    Poll::Pending => break,
                }
            }
            let Some(deadline) = deadline else { return Poll::Pending };
            self.poll_timer(deadline, context).map(|()| Waited::Late)
        })
        .await
    }

    /// Reads what is there; `false` at the end of the connection. The reactor knows that a short read
    /// was all there is, so there is no second call for that.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.read.len() - self.filled < LEAST_ROOM {
            self.read.resize(self.filled + READ_BYTES, 0);
        }
        let mut room = ReadBuf::new(&mut self.read[self.filled..]);
        let done = Pin::new(&mut self.stream).poll_read(context, &mut room);
        done.map(|done| {
            let read = room.filled().len();
            self.filled += read;
            done.is_ok() && read > 0
        })
    }

    fn poll_timer(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let at = deadline.into();
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if at < timer.deadline() {
            timer.as_mut().reset(at);
        }
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A request for the general path; `None` if it cannot be represented.
fn general(head: &Head, bytes: &[u8]) -> Option<Request<Full<Bytes>>> {
    let body = Bytes::copy_from_slice(bytes.get(head.length..)?);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = bytes.get(head.path.clone())?.try_into().ok()?;
    for (name, value) in head::headers(bytes) {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(value).ok()?);
    }
    Some(request)
}

fn write_status(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    let reason = status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
}

fn write_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"content-length: ");
    append_number(length as u64, out);
    out.extend_from_slice(b"\r\n");
}

thread_local! {
    /// The second of the last response, and its text.
    static DATE: std::cell::RefCell<(u64, String)> = const { std::cell::RefCell::new((0, String::new())) };
}

/// The current time, as hyper writes it.
fn write_date(out: &mut Vec<u8>) {
    let now = std::time::SystemTime::now();
    let second = now.duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    DATE.with_borrow_mut(|(last, text)| {
        if *last != second || text.is_empty() {
            (*last, *text) = (second, httpdate::fmt_http_date(now));
        }
        out.extend_from_slice(text.as_bytes());
    });
}
