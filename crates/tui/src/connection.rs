//! Connections to the server: one that follows the project, one for calls, and one for each pane. They never
//! block.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use patterm_screen::Size;
use patterm_wire::environment::{CallerEnvironment, PassEnvironment};
use patterm_wire::error::INTERNAL_ERROR;
use patterm_wire::follow::{self, Follow, FollowRequest, ProjectSnapshot, SelectionAnswer};
use patterm_wire::view::{
    self, FromView, SizePolicy, ToView, View, ViewDecoder, ViewRequest, ViewSize,
};
use patterm_wire::{Decoder, ErrorObject, Frame, Framing, Id, Incoming, Message, Method, reply};
use serde_json::Value;

use crate::update::CallPurpose;

/// Bytes per read.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// The longest message accepted: a project with its last messages, or a part of some output.
pub(crate) const MESSAGE_BYTES: usize = 64 << 20;

/// Bytes that may wait for the server. It always reads, so if there are more, it is broken.
const OUTBOX_BYTES: usize = 8 << 20;

/// The connection was closed, or the server sent something invalid.
#[derive(Debug)]
pub(crate) struct ConnectionLost;

impl From<io::Error> for ConnectionLost {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// A stream that never blocks.
#[derive(Debug)]
pub(crate) struct NonBlockingStream {
    pub(crate) stream: UnixStream,
    outbox: VecDeque<u8>,
    /// Something was read.
    heard: bool,
}

impl NonBlockingStream {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, outbox: VecDeque::new(), heard: false })
    }

    /// Whether something waits for the server.
    pub(crate) fn wants_to_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ConnectionLost> {
        if self.outbox.len() + bytes.len() > OUTBOX_BYTES {
            return Err(ConnectionLost);
        }
        self.outbox.extend(bytes);
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Result<(), ConnectionLost> {
        while !self.outbox.is_empty() {
            let (front, _) = self.outbox.as_slices();
            match self.stream.write(front) {
                Ok(bytes) => drop(self.outbox.drain(..bytes)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // It is gone; what it sent before can still be read, and then the end of the stream.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.outbox.clear(),
                Err(_) => return Err(ConnectionLost),
            }
        }
        Ok(())
    }

    /// Reads what is available, which may be nothing.
    pub(crate) fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Result<&'a [u8], ConnectionLost> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        match self.stream.read(buffer) {
            Ok(0) => Err(ConnectionLost),
            Ok(bytes) => {
                self.heard = true;
                Ok(&buffer[..bytes])
            }
            Err(e) if matches!(e.kind(), WouldBlock | Interrupted) => Ok(&[]),
            Err(_) => Err(ConnectionLost),
        }
    }

    pub(crate) fn request<M: Method>(&mut self, params: &M::Params) -> Result<(), ConnectionLost> {
        let params = serde_json::to_string(params).map_err(|_| ConnectionLost)?;
        self.send_request(1, M::NAME, &params)
    }

    fn send_request(&mut self, id: u64, method: &str, params: &str) -> Result<(), ConnectionLost> {
        let body = reply::request(&Id::from_number(id), method, Some(params));
        let mut line = Vec::new();
        Framing::Newline.encode(&body, &mut line);
        self.push(&line)
    }
}

/// The error of a response.
fn parse_error(error: &str) -> ErrorObject {
    let error = serde_json::from_str(error);
    error.unwrap_or_else(|_| ErrorObject::new(INTERNAL_ERROR, "the server refused the request"))
}

/// The text of an error, without suggestions for callers of tools.
pub(crate) fn error_text(error: &str) -> String {
    let error = parse_error(error);
    error.details().render(|_| None).unwrap_or(error.message)
}

/// What the server sent to a follower.
#[derive(Debug)]
pub(crate) enum Notification {
    /// The current state of the project.
    Snapshot(Box<ProjectSnapshot>),
    /// The server was ended for good.
    Ended,
    /// The server refused to be followed.
    Refused(String),
}

/// Follows the project.
#[derive(Debug)]
pub(crate) struct FollowConnection {
    stream: NonBlockingStream,
    decoder: Decoder,
}

impl FollowConnection {
    /// Begins to follow. An observer shows no panes, and is not asked to select any.
    pub(crate) fn begin(stream: UnixStream, observes: bool) -> Result<Self, ConnectionLost> {
        let mut stream = NonBlockingStream::new(stream)?;
        let version = follow::VERSION;
        stream.request::<Follow>(&FollowRequest { version, answers: !observes, observes })?;
        Ok(Self { stream, decoder: Decoder::new(MESSAGE_BYTES) })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.stream.stream.as_fd()
    }

    /// Whether anything came from the server since the last call.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.stream.heard)
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        self.stream.wants_to_write()
    }

    /// Reports what was done about a call of `select_process`.
    pub(crate) fn answer_selection(
        &mut self,
        answer: SelectionAnswer,
    ) -> Result<(), ConnectionLost> {
        let params = serde_json::to_string(&answer).map_err(|_| ConnectionLost)?;
        let mut line = Vec::new();
        let body = reply::notification(follow::SELECTION_ANSWER, Some(&params));
        Framing::Newline.encode(&body, &mut line);
        self.stream.push(&line)
    }

    /// The newest notification.
    pub(crate) fn read(&mut self) -> Result<Option<Notification>, ConnectionLost> {
        self.stream.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        self.decoder.feed(self.stream.read(&mut buffer)?);
        let mut newest = None;
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { return Err(ConnectionLost) };
            let snapshot = match Incoming::parse(body) {
                Ok(Incoming::One(Message::Response { outcome: Ok(snapshot), .. })) => {
                    snapshot.get()
                }
                Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
                    return Ok(Some(Notification::Refused(error_text(error.get()))));
                }
                Ok(Incoming::One(Message::Notification { method, params: Some(params) }))
                    if method == follow::CHANGED =>
                {
                    params.get()
                }
                Ok(Incoming::One(Message::Notification { method, .. }))
                    if method == follow::ENDED =>
                {
                    return Ok(Some(Notification::Ended));
                }
                _ => continue,
            };
            newest = serde_json::from_str(snapshot).ok().or(newest);
        }
        Ok(newest.map(|snapshot| Notification::Snapshot(Box::new(snapshot))))
    }
}

/// The outcome of a call, and its purpose.
pub(crate) type Answered = (CallPurpose, Result<Value, ErrorObject>);

/// Calls methods and tools.
#[derive(Debug)]
pub(crate) struct CallConnection {
    stream: NonBlockingStream,
    decoder: Decoder,
    last: u64,
    open: Vec<(u64, CallPurpose)>,
}

impl CallConnection {
    pub(crate) fn begin(
        stream: UnixStream,
        greeting: &str,
        environment: Option<&CallerEnvironment>,
    ) -> Result<Self, ConnectionLost> {
        let mut stream = NonBlockingStream::new(stream)?;
        stream.push(format!("{greeting}\n").as_bytes())?;
        // The answer is ignored: a 0.1 server refuses the request, and starts programs with its own environment.
        if let Some(environment) = environment {
            let environment = serde_json::to_string(environment).map_err(|_| ConnectionLost)?;
            stream.send_request(0, PassEnvironment::NAME, &environment)?;
        }
        let decoder = Decoder::new(MESSAGE_BYTES);
        Ok(Self { stream, decoder, last: 0, open: Vec::new() })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.stream.stream.as_fd()
    }

    /// Whether anything came from the server since the last call.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.stream.heard)
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        self.stream.wants_to_write()
    }

    pub(crate) fn call(
        &mut self,
        method: &str,
        params: &Value,
        purpose: CallPurpose,
    ) -> Result<(), ConnectionLost> {
        self.last += 1;
        self.open.push((self.last, purpose));
        self.stream.send_request(self.last, method, &params.to_string())
    }

    /// Writes and reads what is possible; returns the outcomes that arrived.
    pub(crate) fn serve(&mut self) -> Result<Vec<Answered>, ConnectionLost> {
        self.stream.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        self.decoder.feed(self.stream.read(&mut buffer)?);
        let mut answers = Vec::new();
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { return Err(ConnectionLost) };
            let Ok(Incoming::One(Message::Response { id: Some(id), outcome })) =
                Incoming::parse(body)
            else {
                continue;
            };
            let number = id.as_json().parse::<u64>().unwrap_or(0);
            let Some(at) = self.open.iter().position(|(known, _)| *known == number) else {
                continue;
            };
            let (_, purpose) = self.open.remove(at);
            let outcome = match outcome {
                Ok(result) => serde_json::from_str(result.get())
                    .map_err(|e| ErrorObject::new(INTERNAL_ERROR, e.to_string())),
                Err(error) => Err(parse_error(error.get())),
            };
            answers.push((purpose, outcome));
        }
        Ok(answers)
    }

    /// The calls that will not be answered.
    pub(crate) fn give_up(self) -> Vec<CallPurpose> {
        self.open.into_iter().map(|(_, purpose)| purpose).collect()
    }
}

/// What arrived on a pane's connection.
#[derive(Debug)]
pub(crate) enum PaneEvent {
    Frame(ToView),
    Refused(String),
}

/// A pane's view of its process.
#[derive(Debug)]
pub(crate) struct PaneConnection {
    stream: NonBlockingStream,
    decoder: ViewDecoder,
    /// The response to the request, until it is complete.
    answer: Option<Vec<u8>>,
}

impl PaneConnection {
    pub(crate) fn begin(
        stream: UnixStream,
        process: &str,
        size: Size,
        sizes: SizePolicy,
    ) -> Result<Self, ConnectionLost> {
        let mut stream = NonBlockingStream::new(stream)?;
        stream.request::<View>(&ViewRequest {
            version: view::VERSION,
            process_id: process.to_owned(),
            rows: Some(size.rows),
            columns: Some(size.columns),
            sizes,
            pictures: true,
            attends: false,
        })?;
        Ok(Self { stream, decoder: ViewDecoder::default(), answer: Some(Vec::new()) })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.stream.stream.as_fd()
    }

    /// Whether anything came from the server since the last call.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.stream.heard)
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        self.stream.wants_to_write()
    }

    pub(crate) fn send(&mut self, frame: &FromView) -> Result<(), ConnectionLost> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.stream.push(&bytes)
    }

    pub(crate) fn resize(&mut self, size: Size) -> Result<(), ConnectionLost> {
        self.send(&FromView::Size(ViewSize { rows: size.rows, columns: size.columns }))
    }

    /// Writes and reads what is possible; returns what arrived.
    pub(crate) fn serve(&mut self) -> Result<Vec<PaneEvent>, ConnectionLost> {
        self.stream.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        let received = self.stream.read(&mut buffer)?;
        match &mut self.answer {
            None => self.decoder.feed(received),
            Some(answer) => {
                answer.extend_from_slice(received);
                let Some(end) = answer.iter().position(|byte| *byte == b'\n') else {
                    return Ok(Vec::new());
                };
                if let Some(why) = refused(&answer[..end]) {
                    return Ok(vec![PaneEvent::Refused(why)]);
                }
                let rest = answer.split_off(end + 1);
                self.decoder.feed(&rest);
                self.answer = None;
            }
        }
        let mut frames = Vec::new();
        while let Some(frame) = self.decoder.next_to_view().map_err(|_| ConnectionLost)? {
            frames.push(PaneEvent::Frame(frame));
        }
        Ok(frames)
    }
}

fn refused(answer: &[u8]) -> Option<String> {
    match Incoming::parse(answer) {
        Ok(Incoming::One(Message::Response { outcome: Ok(_), .. })) => None,
        Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
            Some(error_text(error.get()))
        }
        _ => Some("the server does not support views; it is older than this patterm".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_end_is_read_after_a_failed_write() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let size = Size::new(24, 80);
        let mut pane = PaneConnection::begin(ours, "p1", size, SizePolicy::default()).unwrap();
        let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no folder"}}"#;
        (&theirs).write_all(format!("{refusal}\n").as_bytes()).unwrap();
        drop(theirs);
        pane.send(&FromView::Input(b"t".to_vec())).unwrap();
        let received = pane.serve().unwrap();
        assert!(matches!(&received[..], [PaneEvent::Refused(why)] if why == "no folder"));
        assert!(pane.serve().is_err());
    }
}
