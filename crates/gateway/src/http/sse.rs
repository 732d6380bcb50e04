//! Streams of events, which a client can resume where it disconnected.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use patterm_wire::line;
use tokio::sync::Notify;

use super::response::append_number;

/// Events kept per stream for a client that disconnects.
const REPLAY_EVENTS: usize = 256;

/// Their bytes: one response may take all of them.
const REPLAY_BYTES: usize = 4 << 20;

/// Bytes of an event besides its text, usually.
const EVENT_BYTES: usize = 32;

/// A stream: events are appended, and one reader at a time follows from where it wants.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    state: Mutex<StreamState>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct StreamState {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
    /// No more events follow.
    ended: bool,
    /// The current reader; older ones stop.
    reader: u64,
    /// The last event that a reader got.
    delivered: Option<u64>,
}

impl EventStream {
    /// Appends an event with a JSON text on one line: a line end in it would end the event.
    pub(super) fn push(&self, number: u64, json: &str) {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        let mut event = Vec::with_capacity(json.len() + EVENT_BYTES);
        event.extend_from_slice(b"id: ");
        append_number(number, &mut event);
        event.push(b'-');
        append_number(id, &mut event);
        event.extend_from_slice(b"\ndata: ");
        line::append(json.as_bytes(), &mut event);
        event.extend_from_slice(b"\n\n");
        let event = Bytes::from(event);
        state.bytes += event.len();
        state.events.push_back((id, event));
        while state.events.len() > REPLAY_EVENTS
            || (state.bytes > REPLAY_BYTES && state.events.len() > 1)
        {
            let Some((_, gone)) = state.events.pop_front() else { break };
            state.bytes -= gone.len();
        }
        drop(state);
        self.wake.notify_waiters();
    }

    /// Reads all events at once, if there is no other reader.
    pub(super) fn read_all(&self) -> Vec<u8> {
        let mut state = self.lock();
        let mut all = Vec::with_capacity(state.bytes);
        state.events.iter().for_each(|(_, event)| all.extend_from_slice(event));
        state.delivered = state.events.back().map(|(id, _)| *id);
        all
    }

    /// No more events follow.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.wake.notify_waiters();
    }

    /// The next event after `after`; `None` at the end, or when another reader replaced this one.
    async fn next(&self, after: &mut Option<u64>, reader: u64) -> Option<Bytes> {
        loop {
            let notified = self.wake.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            {
                let mut state = self.lock();
                if state.reader != reader {
                    return None;
                }
                let found =
                    state.events.iter().find(|(id, _)| after.is_none_or(|after| *id > after));
                if let Some((id, event)) = found {
                    let (id, event) = (*id, event.clone());
                    *after = Some(id);
                    state.delivered = state.delivered.max(*after);
                    return Some(event);
                }
                if state.ended {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// The current reader.
    pub(super) fn reader(&self) -> u64 {
        self.lock().reader
    }

    /// A new reader, and the last event that earlier ones got.
    fn begin_reading(&self) -> (u64, Option<u64>) {
        let mut state = self.lock();
        state.reader += 1;
        let begun = (state.reader, state.delivered);
        drop(state);
        self.wake.notify_waiters();
        begun
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that follows a stream after an event, or after what earlier readers got. `guard` lives
/// as long as somebody reads.
pub(super) fn response<G: Send + 'static>(
    stream: Arc<EventStream>,
    after: Option<u64>,
    guard: G,
) -> Response {
    let (reader, delivered) = stream.begin_reading();
    let after = after.or(delivered);
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
