//! The two framings of a stream: one JSON text per line, or LSP-style `Content-Length` headers. The decoder
//! detects which one the peer uses, limits what it buffers, and resynchronizes after bad input.

use crate::error::ErrorObject;
use crate::id::Id;
use crate::message::Malformed;
use crate::{line, nesting};

/// A longer header block is garbage: real ones have less than 100 bytes.
const MAX_HEADER_BLOCK: usize = 8 << 10;

/// How far into an overlong message to look for its id: clients write it first.
const ID_SEARCH: usize = 64 << 10;

/// A buffer that grew beyond this for one large message is freed once half of this suffices.
const KEPT_BUFFER: usize = 256 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The common beginning of the header names that a first line may have.
const HEADER_START: &[u8] = b"content-";

/// The required header, and the mark by which the next message is found.
const LENGTH_MARK: &[u8] = b"content-length:";

/// How messages are delimited on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON text per line.
    Newline,
    /// `Content-Length: N`, an empty line, N bytes.
    Headers,
}

impl Framing {
    /// Appends one frame to `out`. With [`Framing::Newline`] the JSON text becomes one line, whatever line
    /// ends it has.
    pub fn encode(self, body: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Newline => {
                line::append(body, out);
                out.push(b'\n');
            }
            Self::Headers => {
                let header = format!("Content-Length: {}\r\n\r\n", body.len());
                out.reserve(header.len() + body.len());
                out.extend_from_slice(header.as_bytes());
                out.extend_from_slice(body);
            }
        }
    }
}

/// What the decoder found.
#[derive(Debug, PartialEq)]
pub enum Frame<'a> {
    /// The body of a frame, JSON or not.
    Body(&'a [u8]),
    /// Bytes that are not a frame. They are skipped and reported once.
    Bad(BadFrame),
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum BadFrame {
    /// The message is longer than the limit.
    TooLong {
        /// The limit in bytes.
        limit: usize,
        /// Its id, if that was near the start.
        id: Option<Id>,
    },
    /// A header block without a usable `Content-Length`.
    BadHeaders(&'static str),
    /// The stream ended inside a frame.
    CutOff,
}

impl From<BadFrame> for Malformed {
    fn from(bad: BadFrame) -> Self {
        let (id, message) = match bad {
            BadFrame::TooLong { limit, id } => {
                (id, format!("the message is longer than the limit of {limit} bytes"))
            }
            BadFrame::BadHeaders(why) => (None, why.to_owned()),
            BadFrame::CutOff => (None, "the input ended inside a message".to_owned()),
        };
        Self { id, error: ErrorObject::parse_error(message) }
    }
}

/// Turns bytes into frames. It buffers at most one incomplete frame of the limit's size and what was fed
/// after it.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    state: State,
    framing: Option<Framing>,
    buffer: Vec<u8>,
    /// Where the bytes begin that are not part of a returned frame.
    head: usize,
    /// How many bytes from `head` on need not be searched for a line feed: they contain none, or are header
    /// lines that were read.
    scanned: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Before the first byte, where a byte order mark may be.
    First,
    /// No message has shown the framing yet.
    Undecided,
    Line,
    /// Dropping the rest of an overlong line.
    LongLine,
    /// In a header block, whose lines up to `at` set `length`. It is buffered until it is complete: if it is
    /// bad, the next message may begin inside it.
    Headers {
        at: usize,
        length: Option<usize>,
    },
    Body {
        length: usize,
    },
    /// Dropping everything up to the next `Content-Length:`.
    Lost,
}

const NO_HEADERS: State = State::Headers { at: 0, length: None };

impl Decoder {
    /// A decoder for messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: State::First, framing: None, buffer: Vec::new(), head: 0, scanned: 0 }
    }

    /// The framing of the peer's first message, once that has arrived.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Detects the framing again from the next byte on: what came before was a greeting.
    pub fn forget_framing(&mut self) {
        self.framing = None;
        self.state = State::Undecided;
    }

    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.head > 0 && self.head >= self.buffer.len() / 2 {
            self.buffer.drain(..self.head);
            self.head = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, or `None` until more is fed.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            let Some(step) = self.step() else {
                self.shrink();
                return None;
            };
            match step {
                Step::Again => {}
                Step::Body { start, end } => return Some(Frame::Body(&self.buffer[start..end])),
                Step::Bad(bad) => return Some(Frame::Bad(bad)),
            }
        }
    }

    /// Takes everything that is buffered: the stream switches to another protocol.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.waiting().to_vec();
        self.take(rest.len());
        rest
    }

    /// The rest when the stream ends: a last line without a line feed is a frame, an incomplete frame is bad.
    /// Call it after [`Decoder::next_frame`] has returned `None`.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let start = self.head;
        let left = self.buffer.len() - start;
        self.take(left);
        match std::mem::replace(&mut self.state, State::Undecided) {
            State::First | State::Undecided | State::Line => {
                let line = trim_line(&self.buffer[start..]);
                (!line.is_empty()).then_some(Frame::Body(line))
            }
            State::LongLine | State::Lost => None,
            State::Headers { .. } => {
                let cut = !self.buffer[start..].trim_ascii().is_empty();
                cut.then_some(Frame::Bad(BadFrame::CutOff))
            }
            State::Body { .. } => Some(Frame::Bad(BadFrame::CutOff)),
        }
    }

    /// Frees the memory of a large message: the peer may be silent for a long time.
    fn shrink(&mut self) {
        if self.buffer.capacity() > KEPT_BUFFER && self.waiting().len() <= KEPT_BUFFER / 2 {
            self.buffer = self.waiting().to_vec();
            self.head = 0;
        }
    }

    fn step(&mut self) -> Option<Step> {
        match self.state {
            State::First => self.first(),
            State::Undecided => self.undecided(),
            State::Line => self.line(),
            State::LongLine => self.long_line(),
            State::Headers { at, length } => self.header(at, length),
            State::Body { length } => self.body(length),
            State::Lost => self.lost(),
        }
    }

    fn first(&mut self) -> Option<Step> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return None;
        }
        if waiting.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(waiting) {
            return None;
        }
        if waiting.starts_with(BYTE_ORDER_MARK) {
            self.take(BYTE_ORDER_MARK.len());
        }
        self.state = State::Undecided;
        Some(Step::Again)
    }

    /// Header names begin with `Content-`, messages with a bracket; anything else is a line of garbage that
    /// does not show the framing.
    fn undecided(&mut self) -> Option<Step> {
        let blank = self.waiting().iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.take(blank);
        let waiting = self.waiting();
        let start = &waiting[..waiting.len().min(HEADER_START.len())];
        if start.is_empty() {
            return None;
        }
        if HEADER_START[..start.len()].eq_ignore_ascii_case(start) {
            if start.len() < HEADER_START.len() {
                return None;
            }
            self.framing = Some(Framing::Headers);
            self.state = NO_HEADERS;
            return Some(Step::Again);
        }
        if matches!(start[0], b'{' | b'[') {
            self.framing = Some(Framing::Newline);
            self.state = State::Line;
        }
        self.line()
    }

    fn line(&mut self) -> Option<Step> {
        let Some(end) = self.line_end() else {
            let waiting = self.waiting();
            if waiting.len() <= self.limit {
                return None;
            }
            let bad = self.too_long();
            self.take(self.waiting().len());
            self.state = State::LongLine;
            return Some(bad);
        };
        let start = self.head;
        let line = trim_line(&self.buffer[start..start + end]);
        let length = line.len();
        let step = match length {
            0 => Step::Again,
            _ if end > self.limit => self.too_long(),
            _ => Step::Body { start, end: start + length },
        };
        self.take(end + 1);
        Some(step)
    }

    fn long_line(&mut self) -> Option<Step> {
        let Some(end) = self.line_end() else {
            self.take(self.waiting().len());
            return None;
        };
        self.take(end + 1);
        self.state = if self.framing.is_some() { State::Line } else { State::Undecided };
        Some(Step::Again)
    }

    fn header(&mut self, at: usize, length: Option<usize>) -> Option<Step> {
        // The lines before contain no other length; a mark inside them is as good as any.
        let given_up_from = if length.is_some() { at } else { 0 };
        let end = self.line_end();
        if end.map_or(self.waiting().len(), |end| end + 1) > MAX_HEADER_BLOCK {
            let own_mark = at == 0 && starts_ignoring_case(self.waiting(), LENGTH_MARK);
            let from = if own_mark { LENGTH_MARK.len() } else { given_up_from };
            return Some(self.resync(from, "the header block does not end"));
        }
        let next = end? + 1;
        let line = trim_line(&self.waiting()[at..next]);
        if line.is_empty() {
            return Some(self.end_of_headers(at, next, length));
        }
        let Some((name, value)) = split_header(line) else {
            return Some(self.resync(given_up_from, "not a header"));
        };
        let length = if name.eq_ignore_ascii_case(b"content-length") {
            let read = std::str::from_utf8(value).ok().and_then(|v| v.parse::<u64>().ok());
            match read.map(|n| usize::try_from(n).unwrap_or(usize::MAX)) {
                Some(n) if length.is_none_or(|earlier| earlier == n) => Some(n),
                // The search for the next mark must not find this one again.
                _ => {
                    let from = at + LENGTH_MARK.len();
                    return Some(self.resync(from, "Content-Length is not a number"));
                }
            }
        } else {
            length
        };
        self.scanned = next;
        self.state = State::Headers { at: next, length };
        Some(Step::Again)
    }

    /// The empty line that ends a block of `at` bytes; `next` is where the body begins.
    fn end_of_headers(&mut self, at: usize, next: usize, length: Option<usize>) -> Step {
        let Some(length) = length else {
            if at > 0 {
                return self.resync(0, "the header block has no Content-Length");
            }
            self.take(next);
            return Step::Again;
        };
        self.take(next);
        if length > self.limit {
            self.state = State::Lost;
            return Step::Bad(BadFrame::TooLong { limit: self.limit, id: None });
        }
        self.state = State::Body { length };
        Step::Again
    }

    fn body(&mut self, length: usize) -> Option<Step> {
        if self.waiting().len() < length {
            return None;
        }
        let start = self.head;
        self.take(length);
        self.state = NO_HEADERS;
        Some(Step::Body { start, end: start + length })
    }

    fn lost(&mut self) -> Option<Step> {
        match find_ignoring_case(self.waiting(), LENGTH_MARK) {
            Some(at) => {
                self.take(at);
                self.state = NO_HEADERS;
                Some(Step::Again)
            }
            None => {
                let kept = self.waiting().len().min(LENGTH_MARK.len() - 1);
                self.take(self.waiting().len() - kept);
                None
            }
        }
    }

    /// Skips `bytes` and then everything up to the next mark.
    fn resync(&mut self, bytes: usize, why: &'static str) -> Step {
        self.take(bytes);
        self.scanned = 0;
        self.state = State::Lost;
        Step::Bad(BadFrame::BadHeaders(why))
    }

    fn too_long(&self) -> Step {
        // Not beyond the limit: what comes after it depends on how the bytes arrived.
        let searched = self.waiting().len().min(ID_SEARCH).min(self.limit);
        let id = nesting::id_in_prefix(&self.waiting()[..searched]);
        Step::Bad(BadFrame::TooLong { limit: self.limit, id })
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.head..]
    }

    fn take(&mut self, bytes: usize) {
        self.head += bytes;
        self.scanned = self.scanned.saturating_sub(bytes);
        if self.head == self.buffer.len() && matches!(self.state, State::LongLine | State::Lost) {
            // Dropped bytes are never read again: free them now, not at the next feed.
            self.buffer.clear();
            self.head = 0;
        }
    }

    /// The position of the line feed, relative to `head`.
    fn line_end(&mut self) -> Option<usize> {
        let found = memchr::memchr(b'\n', &self.buffer[self.head + self.scanned..]);
        match found {
            Some(at) => Some(self.scanned + at),
            None => {
                self.scanned = self.buffer.len() - self.head;
                None
            }
        }
    }
}

/// The result of one step; positions are in the buffer.
enum Step {
    Again,
    Body { start: usize, end: usize },
    Bad(BadFrame),
}

/// A line without trailing blanks and its line end.
fn trim_line(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}

fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let name = &line[..colon];
    let is_name = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
    is_name.then(|| (name, line[colon + 1..].trim_ascii()))
}

fn find_ignoring_case(text: &[u8], mark: &[u8]) -> Option<usize> {
    let (lower, upper) = (mark[0].to_ascii_lowercase(), mark[0].to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, text).find(|&at| starts_ignoring_case(&text[at..], mark))
}

fn starts_ignoring_case(text: &[u8], mark: &[u8]) -> bool {
    text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
