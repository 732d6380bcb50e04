//! What comes back: bodies of JSON, and streams of events that become lines.

use std::sync::Arc;

use axum::http::{HeaderValue, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming as Body;
use patterm_wire::{DEFAULT_MESSAGE_LIMIT, Id, Incoming, Message};
use tokio::io::{AsyncWriteExt, DuplexStream};

/// Where lines go.
pub(super) type Out = Arc<tokio::sync::Mutex<DuplexStream>>;

/// The events of one stream.
#[derive(Default)]
pub(super) struct Events {
    pub(super) last: Option<HeaderValue>,
    line: Vec<u8>,
    data: Vec<u8>,
}

impl Events {
    /// A stream that goes on after this event.
    pub(super) fn after(last: Option<HeaderValue>) -> Self {
        Self { last, ..Self::default() }
    }

    /// Passes on what comes, until the stream ends or the answer to this request was there.
    pub(super) async fn read(
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

pub(super) fn is_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    response.status().is_success()
        && kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

pub(super) async fn collect(body: Body) -> Result<Vec<u8>, String> {
    let body = Limited::new(body, DEFAULT_MESSAGE_LIMIT).collect().await;
    body.map(|body| body.to_bytes().to_vec()).map_err(|e| format!("broke off: {e}"))
}

/// Writes a message as one line: JSON has no line ends that mean anything.
pub(super) async fn write(out: &Out, message: &[u8]) {
    let mut line: Vec<u8> = message
        .iter()
        .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
        .collect();
    line.push(b'\n');
    // A session that is gone reads nothing any more.
    let _ = out.lock().await.write_all(&line).await;
}

/// Why a request failed, down to the innermost reason.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
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
