//! Streams of events, which can be taken up again where they broke off.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use patterm_wire::line;
use tokio::sync::Notify;

/// Events of one stream that are kept for a client that broke off.
const KEPT_EVENTS: usize = 256;

/// And bytes of them: one answer may be as large as all of it.
const KEPT_BYTES: usize = 4 << 20;

/// A stream: events come in, and one reader at a time takes them from where it wants.
#[derive(Debug, Default)]
pub(super) struct Stream {
    held: Mutex<Held>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
    /// No more will come.
    over: bool,
    /// Which reader is the one: an older one lets go.
    reader: u64,
}

impl Stream {
    /// Adds an event that says a JSON text: a line end in it would end the event.
    pub(super) fn push(&self, number: u64, json: &str) {
        let mut held = self.lock();
        let id = held.next;
        held.next += 1;
        let mut event = format!("id: {number}-{id}\ndata: ").into_bytes();
        line::append(json.as_bytes(), &mut event);
        event.extend_from_slice(b"\n\n");
        let event = Bytes::from(event);
        held.bytes += event.len();
        held.events.push_back((id, event));
        while held.events.len() > KEPT_EVENTS || (held.bytes > KEPT_BYTES && held.events.len() > 1)
        {
            let Some((_, gone)) = held.events.pop_front() else { break };
            held.bytes -= gone.len();
        }
        drop(held);
        self.bell.notify_waiters();
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.bell.notify_waiters();
    }

    /// What is to be sent after this event; `None` at the end, or when another reader came.
    async fn next(&self, after: &mut Option<u64>, reader: u64) -> Option<Bytes> {
        loop {
            let heard = self.bell.notified();
            let mut heard = std::pin::pin!(heard);
            heard.as_mut().enable();
            {
                let held = self.lock();
                if held.reader != reader {
                    return None;
                }
                let found =
                    held.events.iter().find(|(id, _)| after.is_none_or(|after| *id > after));
                if let Some((id, event)) = found {
                    *after = Some(*id);
                    return Some(event.clone());
                }
                if held.over {
                    return None;
                }
            }
            heard.await;
        }
    }

    /// Which reader is the one.
    pub(super) fn reader(&self) -> u64 {
        self.lock().reader
    }

    fn begin_reading(&self) -> u64 {
        let mut held = self.lock();
        held.reader += 1;
        let reader = held.reader;
        drop(held);
        self.bell.notify_waiters();
        reader
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that follows a stream after this event. `guard` lives as long as somebody reads.
pub(super) fn response<G: Send + 'static>(
    stream: Arc<Stream>,
    after: Option<u64>,
    guard: G,
) -> Response {
    let reader = stream.begin_reading();
    let events = futures_util::stream::unfold(
        (stream, after, guard),
        move |(stream, mut after, guard)| async move {
            let event = stream.next(&mut after, reader).await?;
            Some((Ok::<_, Infallible>(event), (stream, after, guard)))
        },
    );
    let mut response = Response::new(Body::from_stream(events));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
