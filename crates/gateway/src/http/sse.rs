//! Streams of events, which a client can resume where it disconnected.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use patterm_wire::line;
use tokio::sync::Notify;

/// Events kept per stream for a client that disconnects.
const KEPT_EVENTS: usize = 256;

/// Their bytes: one response may take all of them.
const KEPT_BYTES: usize = 4 << 20;

/// A stream: events are appended, and one reader at a time follows from where it wants.
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
    /// No more events follow.
    over: bool,
    /// The current reader; older ones stop.
    reader: u64,
}

impl Stream {
    /// Appends an event with a JSON text on one line: a line end in it would end the event.
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

    /// No more events follow.
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.bell.notify_waiters();
    }

    /// The next event after `after`; `None` at the end, or when another reader replaced this one.
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

    /// The current reader.
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

/// A response that follows a stream after an event. `guard` lives as long as somebody reads.
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
