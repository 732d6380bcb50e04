//! The connection on which the server sends the lines of all processes.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use patterm_wire::logs::{self, LogLines, LogsRequest, ReadLogs};
use patterm_wire::{Decoder, Frame, Incoming, Message};

use crate::connection::{ConnectionLost, MESSAGE_BYTES, NonBlockingStream, READ_BYTES, error_text};

/// What arrived.
#[derive(Debug)]
pub(crate) enum LogEvent {
    Lines(LogLines),
    Refused(String),
}

/// Reads the lines of all processes.
#[derive(Debug)]
pub(crate) struct LogConnection {
    stream: NonBlockingStream,
    decoder: Decoder,
}

impl LogConnection {
    pub(crate) fn begin(stream: UnixStream, request: &LogsRequest) -> Result<Self, ConnectionLost> {
        let mut stream = NonBlockingStream::new(stream)?;
        stream.request::<ReadLogs>(request)?;
        Ok(Self { stream, decoder: Decoder::new(MESSAGE_BYTES) })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.stream.stream.as_fd()
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        self.stream.wants_to_write()
    }

    /// Writes and reads what is possible; returns what arrived.
    pub(crate) fn serve(&mut self) -> Result<Vec<LogEvent>, ConnectionLost> {
        self.stream.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        self.decoder.feed(self.stream.read(&mut buffer)?);
        let mut events = Vec::new();
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { return Err(ConnectionLost) };
            match Incoming::parse(body) {
                Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
                    events.push(LogEvent::Refused(error_text(error.get())));
                }
                Ok(Incoming::One(Message::Notification { method, params: Some(params) }))
                    if method == logs::LINES =>
                {
                    let lines = serde_json::from_str(params.get()).map_err(|_| ConnectionLost)?;
                    events.push(LogEvent::Lines(lines));
                }
                _ => {}
            }
        }
        Ok(events)
    }
}
