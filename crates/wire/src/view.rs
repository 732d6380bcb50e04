//! Views of a process: the request that attaches one, and the frames that view and server exchange
//! afterwards. A frame has a length, a kind and bytes; a stream or a WebSocket carries it.

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// The version of these frames, which a view sends with its request.
pub const VERSION: u32 = 1;

/// Turns a connection into a view.
#[derive(Debug)]
pub enum View {}

impl Method for View {
    const NAME: &'static str = "patterm/view";
    type Params = ViewRequest;
    type Result = ViewAttached;
}

/// What a view shows, and what it supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRequest {
    /// [`VERSION`].
    pub version: u32,
    /// The process to show.
    pub process_id: String,
    /// The height that is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    /// The width that is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// How the size is chosen if there are other views.
    #[serde(default)]
    pub sizes: SizePolicy,
    /// It draws frames of its own: output that the next frame replaces may be left out.
    #[serde(default)]
    pub pictures: bool,
    /// Has no effect. A 0.1 server treats it as an answer to a request for attention.
    #[serde(default)]
    pub attends: bool,
}

/// How the size of a process is chosen if it has several views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizePolicy {
    /// The smallest size, which suits all of them.
    #[default]
    Smallest,
    /// The size of the view that was active last.
    Last,
}

/// The view is attached; frames follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewAttached {
    /// [`VERSION`].
    pub version: u32,
    /// The process that is shown.
    pub process_id: String,
}

/// The longest frame: long enough for a snapshot of the largest screen.
pub const FRAME_BYTES: usize = 16 << 20;

/// A size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

/// A frame from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToView {
    /// The screen at an offset of the output, in place of what was shown before.
    Snapshot {
        /// The offset of the next byte of output.
        offset: u64,
        /// The size of the screen.
        size: ViewSize,
        /// Bytes that draw it on an empty screen of that size.
        bytes: Vec<u8>,
    },
    /// Output of the program.
    Output {
        /// The offset of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The program ended; this is the last frame.
    Ended {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// A frame from a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromView {
    /// Bytes that were typed for the program.
    Input(Vec<u8>),
    /// The size that is available.
    Size(ViewSize),
}

impl ToView {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Snapshot { offset, size, bytes } => {
                let head = [&offset.to_be_bytes()[..], &size.encode()].concat();
                append(out, 1, &head, bytes);
            }
            Self::Output { offset, bytes } => append(out, 2, &offset.to_be_bytes(), bytes),
            Self::Ended { code, signal } => {
                let word = |value: Option<i32>| value.map_or(i64::MIN, i64::from).to_be_bytes();
                append(out, 3, &word(*code), &word(*signal));
            }
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        match kind {
            1 => Some(Self::Snapshot {
                offset: u64::from_be_bytes(body.get(..8)?.try_into().ok()?),
                size: ViewSize::decode(body.get(8..12)?)?,
                bytes: body.get(12..)?.to_vec(),
            }),
            2 => Some(Self::Output {
                offset: u64::from_be_bytes(body.get(..8)?.try_into().ok()?),
                bytes: body.get(8..)?.to_vec(),
            }),
            3 => {
                let word = |from: usize| -> Option<Option<i32>> {
                    let word = i64::from_be_bytes(body.get(from..from + 8)?.try_into().ok()?);
                    Some(i32::try_from(word).ok())
                };
                Some(Self::Ended { code: word(0)?, signal: word(8)? })
            }
            _ => None,
        }
    }
}

impl FromView {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Input(bytes) => append(out, 1, &[], bytes),
            Self::Size(size) => append(out, 2, &size.encode(), &[]),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        match kind {
            1 => Some(Self::Input(body.to_vec())),
            2 => ViewSize::decode(body).map(Self::Size),
            _ => None,
        }
    }
}

impl ViewSize {
    fn encode(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.rows.to_be_bytes(), self.columns.to_be_bytes());
        [a, b, c, d]
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d] = bytes.try_into().ok()?;
        Some(Self { rows: u16::from_be_bytes([a, b]), columns: u16::from_be_bytes([c, d]) })
    }
}

fn append(out: &mut Vec<u8>, kind: u8, head: &[u8], bytes: &[u8]) {
    // Frames are far shorter than 32 bits allow.
    let length = u32::try_from(1 + head.len() + bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(head);
    out.extend_from_slice(bytes);
}

/// The peer sent something that is not a frame; the connection cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadViewFrame;

/// Turns bytes into frames.
#[derive(Debug, Default)]
pub struct ViewDecoder {
    buffer: Vec<u8>,
}

impl ViewDecoder {
    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame of the server; `None` until more is fed.
    pub fn next_to_view(&mut self) -> Result<Option<ToView>, BadViewFrame> {
        self.next(ToView::decode)
    }

    /// The next frame of a view; `None` until more is fed.
    pub fn next_from_view(&mut self) -> Result<Option<FromView>, BadViewFrame> {
        self.next(FromView::decode)
    }

    fn next<T>(&mut self, decode: fn(u8, &[u8]) -> Option<T>) -> Result<Option<T>, BadViewFrame> {
        let Some(length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > FRAME_BYTES {
            return Err(BadViewFrame);
        }
        let Some(frame) = self.buffer.get(4..4 + length) else { return Ok(None) };
        let decoded = decode(frame[0], &frame[1..]).ok_or(BadViewFrame)?;
        self.buffer.drain(..4 + length);
        Ok(Some(decoded))
    }
}

#[cfg(test)]
mod tests {
    use arbtest::arbtest;

    use super::*;

    #[test]
    fn frames_survive_any_chunking() {
        let size = ViewSize { rows: 24, columns: 300 };
        let sent = [
            ToView::Snapshot { offset: 1 << 40, size, bytes: b"\x1b[H".to_vec() },
            ToView::Output { offset: 7, bytes: vec![0, 255] },
            ToView::Output { offset: 9, bytes: vec![] },
            ToView::Ended { code: Some(-1), signal: None },
            ToView::Ended { code: None, signal: Some(9) },
        ];
        let answered = [FromView::Input(b"ls\r".to_vec()), FromView::Size(size)];
        let mut stream = Vec::new();
        sent.iter().for_each(|frame| frame.encode(&mut stream));
        let mut back = Vec::new();
        answered.iter().for_each(|frame| frame.encode(&mut back));
        for step in [1, 3, usize::MAX] {
            let mut decoder = ViewDecoder::default();
            let mut seen = Vec::new();
            for piece in stream.chunks(step.min(stream.len())) {
                decoder.feed(piece);
                while let Some(frame) = decoder.next_to_view().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(seen, sent);
            let mut decoder = ViewDecoder::default();
            decoder.feed(&back);
            let seen = std::iter::from_fn(|| decoder.next_from_view().unwrap());
            assert_eq!(seen.collect::<Vec<_>>(), answered);
        }
    }

    #[test]
    fn no_input_makes_it_panic_or_buffer_without_limit() {
        arbtest(|u| {
            let mut decoder = ViewDecoder::default();
            decoder.feed(&u.arbitrary::<Vec<u8>>()?);
            while let Ok(Some(_)) = decoder.next_from_view() {}
            Ok(())
        });
        let mut decoder = ViewDecoder::default();
        decoder.feed(&u32::MAX.to_be_bytes());
        assert_eq!(decoder.next_from_view(), Err(BadViewFrame));
    }
}
