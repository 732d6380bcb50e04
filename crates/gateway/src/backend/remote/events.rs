//! Responses: JSON bodies, and streams of events, which become lines.

use std::sync::Arc;

use axum::http::{HeaderValue, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming as Body;
use patterm_wire::{DEFAULT_MESSAGE_LIMIT, Framing, Id, Incoming, Message};
use tokio::io::{AsyncWriteExt, DuplexStream};

use crate::events::{EventReader, TooLong};
use crate::http_client::error_with_causes;

/// Receives the lines.
pub(super) type LineWriter = Arc<tokio::sync::Mutex<DuplexStream>>;

/// A stream of events.
pub(super) struct EventStream {
    pub(super) last: Option<HeaderValue>,
    reader: EventReader,
}

impl Default for EventStream {
    fn default() -> Self {
        Self::after(None)
    }
}

impl EventStream {
    /// A stream that continues after an event.
    pub(super) fn after(last: Option<HeaderValue>) -> Self {
        Self { last, reader: EventReader::new(DEFAULT_MESSAGE_LIMIT) }
    }

    /// Forwards events until the stream ends or the response to a request arrives.
    pub(super) async fn read(
        &mut self,
        mut body: Body,
        out: &LineWriter,
        of: Option<&Id>,
    ) -> Result<Option<Vec<u8>>, String> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| error_with_causes(&e))?;
            let mut bytes = frame.data_ref().map_or(&[][..], |data| data);
            while let Some(event) = self.next(&mut bytes)? {
                write(out, &event).await;
                if of.is_some_and(|id| answers(&event, id)) {
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, String> {
        let event = self.reader.next(bytes);
        if let Some(id) = self.reader.take_id() {
            self.last = HeaderValue::from_bytes(&id).ok();
        }
        event.map_err(|TooLong| "sent an event over the limit".into())
    }
}

/// Whether a message is the response to a request.
pub(super) fn answers(message: &[u8], id: &Id) -> bool {
    match Incoming::parse(message) {
        Ok(Incoming::One(Message::Response { id: Some(of), .. })) => of == *id,
        _ => false,
    }
}

pub(super) fn is_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    response.status().is_success()
        && kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

pub(super) async fn collect(body: Body) -> Result<Vec<u8>, String> {
    let body = Limited::new(body, DEFAULT_MESSAGE_LIMIT).collect().await;
    body.map(|body| body.to_bytes().to_vec())
        .map_err(|e| format!("sent an incomplete response: {e}"))
}

/// Writes a message as one line.
pub(super) async fn write(out: &LineWriter, message: &[u8]) {
    let mut line = Vec::new();
    Framing::Newline.encode(message, &mut line);
    // A session that has ended reads nothing.
    let _ = out.lock().await.write_all(&line).await;
}
