//! Connections to the server: one that follows the project, one for calls, one for each pane. None
//! of them is ever waited for.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use patterm_screen::Size;
use patterm_wire::follow::{self, ProjectSnapshot, SelectionAnswer};
use patterm_wire::view::{self, FromView, ToView, ViewDecoder, ViewSize};
use patterm_wire::{Decoder, Frame, Framing, Id, Incoming, Message, reply};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings::Sizes;
use crate::update::Asked;

/// Bytes read in one go.
const READ_BYTES: usize = 64 << 10;

/// The longest message taken: a project with its last messages, or some output.
const MESSAGE_BYTES: usize = 64 << 20;

/// Bytes that may wait for a server that does not read. It always does: beyond this it is broken.
const OUTBOX_BYTES: usize = 8 << 20;

/// The connection broke, or made no sense.
#[derive(Debug)]
pub(crate) struct Broken;

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// A stream that never blocks.
#[derive(Debug)]
struct Pipe {
    stream: UnixStream,
    outbox: VecDeque<u8>,
}

impl Pipe {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, outbox: VecDeque::new() })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if self.outbox.len() + bytes.len() > OUTBOX_BYTES {
            return Err(Broken);
        }
        self.outbox.extend(bytes);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Broken> {
        while !self.outbox.is_empty() {
            let (front, _) = self.outbox.as_slices();
            match self.stream.write(front) {
                Ok(bytes) => drop(self.outbox.drain(..bytes)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // It is gone; what it said before is still to be read, and then its end is.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.outbox.clear(),
                Err(_) => return Err(Broken),
            }
        }
        Ok(())
    }

    /// What came; empty if nothing did.
    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Result<&'a [u8], Broken> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        match self.stream.read(buffer) {
            Ok(0) => Err(Broken),
            Ok(bytes) => Ok(&buffer[..bytes]),
            Err(e) if matches!(e.kind(), WouldBlock | Interrupted) => Ok(&[]),
            Err(_) => Err(Broken),
        }
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) -> Result<(), Broken> {
        let body = reply::request(&Id::from_number(id), method, Some(&params.to_string()));
        let mut line = Vec::new();
        Framing::Newline.encode(&body, &mut line);
        self.push(&line)
    }
}

/// Why a request failed, in the server's words.
fn refusal(error: &str) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        message: String,
    }
    let refusal = serde_json::from_str::<Refusal>(error);
    refusal.map_or_else(|_| "the server refused".to_owned(), |refusal| refusal.message)
}

/// What the server told a follower.
#[derive(Debug)]
pub(crate) enum Told {
    /// The project as it is now.
    ProjectSnapshot(Box<ProjectSnapshot>),
    /// It was ended for good.
    Ended,
    /// Why it will not be followed.
    Refused(String),
}

/// Follows the project.
#[derive(Debug)]
pub(crate) struct Follow {
    pipe: Pipe,
    decoder: Decoder,
}

impl Follow {
    pub(crate) fn begin(stream: UnixStream) -> Result<Self, Broken> {
        let mut pipe = Pipe::new(stream)?;
        pipe.request(1, follow::METHOD, &json!({"version": follow::VERSION, "answers": true}))?;
        Ok(Self { pipe, decoder: Decoder::new(MESSAGE_BYTES) })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.pipe.stream.as_fd()
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        !self.pipe.outbox.is_empty()
    }

    /// Says what was done about a call of `select_process`.
    pub(crate) fn answer_selection(&mut self, answer: SelectionAnswer) -> Result<(), Broken> {
        let params = serde_json::to_string(&answer).map_err(|_| Broken)?;
        let mut line = Vec::new();
        let body = reply::notification(follow::SELECTION_ANSWER, Some(&params));
        Framing::Newline.encode(&body, &mut line);
        self.pipe.push(&line)
    }

    /// The newest that came.
    pub(crate) fn read(&mut self) -> Result<Option<Told>, Broken> {
        self.pipe.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        self.decoder.feed(self.pipe.read(&mut buffer)?);
        let mut newest = None;
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { return Err(Broken) };
            let seen = match Incoming::parse(body) {
                Ok(Incoming::One(Message::Response { outcome: Ok(seen), .. })) => seen.get(),
                Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
                    return Ok(Some(Told::Refused(refusal(error.get()))));
                }
                Ok(Incoming::One(Message::Notification { method, params: Some(params) }))
                    if method == follow::CHANGED =>
                {
                    params.get()
                }
                Ok(Incoming::One(Message::Notification { method, .. }))
                    if method == follow::ENDED =>
                {
                    return Ok(Some(Told::Ended));
                }
                _ => continue,
            };
            newest = serde_json::from_str(seen).ok().or(newest);
        }
        Ok(newest.map(|seen| Told::ProjectSnapshot(Box::new(seen))))
    }
}

/// What a tool answered, and what it was called for.
pub(crate) type Answered = (Asked, Result<Value, String>);

/// Calls tools.
#[derive(Debug)]
pub(crate) struct Calls {
    pipe: Pipe,
    decoder: Decoder,
    last: u64,
    waiting: Vec<(u64, Asked)>,
}

impl Calls {
    pub(crate) fn begin(stream: UnixStream, greeting: &str) -> Result<Self, Broken> {
        let mut pipe = Pipe::new(stream)?;
        pipe.push(format!("{greeting}\n").as_bytes())?;
        let decoder = Decoder::new(MESSAGE_BYTES);
        Ok(Self { pipe, decoder, last: 0, waiting: Vec::new() })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.pipe.stream.as_fd()
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        !self.pipe.outbox.is_empty()
    }

    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        asked: Asked,
    ) -> Result<(), Broken> {
        self.last += 1;
        self.waiting.push((self.last, asked));
        self.pipe.request(self.last, tool, arguments)
    }

    /// Moves bytes both ways; returns the answers that came.
    pub(crate) fn serve(&mut self) -> Result<Vec<Answered>, Broken> {
        self.pipe.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        self.decoder.feed(self.pipe.read(&mut buffer)?);
        let mut answers = Vec::new();
        while let Some(frame) = self.decoder.next_frame() {
            let Frame::Body(body) = frame else { return Err(Broken) };
            let Ok(Incoming::One(Message::Response { id: Some(id), outcome })) =
                Incoming::parse(body)
            else {
                continue;
            };
            let number = id.as_json().parse::<u64>().unwrap_or(0);
            let Some(at) = self.waiting.iter().position(|(known, _)| *known == number) else {
                continue;
            };
            let (_, asked) = self.waiting.remove(at);
            let outcome = match outcome {
                Ok(result) => serde_json::from_str(result.get()).map_err(|e| e.to_string()),
                Err(error) => Err(refusal(error.get())),
            };
            answers.push((asked, outcome));
        }
        Ok(answers)
    }

    /// What was asked and will not be answered.
    pub(crate) fn give_up(self) -> Vec<Asked> {
        self.waiting.into_iter().map(|(_, asked)| asked).collect()
    }
}

/// What a pane's connection brought.
#[derive(Debug)]
pub(crate) enum FromPane {
    Frame(ToView),
    Refused(String),
}

/// A pane's view of its process.
#[derive(Debug)]
pub(crate) struct PaneLink {
    pipe: Pipe,
    decoder: ViewDecoder,
    /// The answer to the request, as long as it is not whole.
    answer: Option<Vec<u8>>,
}

impl PaneLink {
    pub(crate) fn begin(
        stream: UnixStream,
        process: &str,
        size: Size,
        sizes: Sizes,
        attends: bool,
    ) -> Result<Self, Broken> {
        let mut pipe = Pipe::new(stream)?;
        let params = json!({
            "version": view::VERSION, "process_id": process,
            "rows": size.rows, "columns": size.columns, "sizes": sizes.name(), "pictures": true,
            "attends": attends,
        });
        pipe.request(1, view::METHOD, &params)?;
        Ok(Self { pipe, decoder: ViewDecoder::default(), answer: Some(Vec::new()) })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.pipe.stream.as_fd()
    }

    pub(crate) fn wants_to_write(&self) -> bool {
        !self.pipe.outbox.is_empty()
    }

    pub(crate) fn say(&mut self, frame: &FromView) -> Result<(), Broken> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.pipe.push(&bytes)
    }

    pub(crate) fn resize(&mut self, size: Size) -> Result<(), Broken> {
        self.say(&FromView::Size(ViewSize { rows: size.rows, columns: size.columns }))
    }

    /// Moves bytes both ways; returns what came.
    pub(crate) fn serve(&mut self) -> Result<Vec<FromPane>, Broken> {
        self.pipe.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        let came = self.pipe.read(&mut buffer)?;
        match &mut self.answer {
            None => self.decoder.feed(came),
            Some(answer) => {
                answer.extend_from_slice(came);
                let Some(end) = answer.iter().position(|byte| *byte == b'\n') else {
                    return Ok(Vec::new());
                };
                if let Some(why) = refused(&answer[..end]) {
                    return Ok(vec![FromPane::Refused(why)]);
                }
                let rest = answer.split_off(end + 1);
                self.decoder.feed(&rest);
                self.answer = None;
            }
        }
        let mut frames = Vec::new();
        while let Some(frame) = self.decoder.next_to_view().map_err(|_| Broken)? {
            frames.push(FromPane::Frame(frame));
        }
        Ok(frames)
    }
}

fn refused(answer: &[u8]) -> Option<String> {
    match Incoming::parse(answer) {
        Ok(Incoming::One(Message::Response { outcome: Ok(_), .. })) => None,
        Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
            Some(refusal(error.get()))
        }
        _ => Some("the server does not know views; it is older than this patterm".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_the_end_is_read_though_keys_were_on_their_way() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let size = Size::new(24, 80);
        let mut pane = PaneLink::begin(ours, "p1", size, Sizes::default(), false).unwrap();
        let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no folder"}}"#;
        (&theirs).write_all(format!("{refusal}\n").as_bytes()).unwrap();
        drop(theirs);
        pane.say(&FromView::Input(b"t".to_vec())).unwrap();
        let came = pane.serve().unwrap();
        assert!(matches!(&came[..], [FromPane::Refused(why)] if why == "no folder"));
        assert!(pane.serve().is_err());
    }
}
