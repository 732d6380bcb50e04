//! What a view of a process and the server say to each other once the view is attached: frames of
//! a length, a kind and bytes. They are values here; a stream or a WebSocket carries them.

/// The version of these frames. A view says which it speaks when it asks to be attached.
pub const VERSION: u32 = 1;

/// The request that turns a connection into a view.
pub const METHOD: &str = "patterm/view";

/// The longest frame: a snapshot of the largest screen fits, and a hostile length does not.
pub const FRAME_BYTES: usize = 16 << 20;

/// A size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToView {
    /// Begin anew: these bytes draw the screen as it is at this offset of the output.
    Snapshot {
        /// The offset of the next byte of output.
        offset: u64,
        /// The size of the screen.
        size: ViewSize,
        /// What draws it on an empty screen of that size.
        bytes: Vec<u8>,
    },
    /// Output of the program, from this offset on.
    Output {
        /// The offset of the first byte.
        offset: u64,
        /// The bytes as they came.
        bytes: Vec<u8>,
    },
    /// The program ended; nothing more will come.
    Ended {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// What a view says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromView {
    /// Bytes for the program, as they were typed.
    Input(Vec<u8>),
    /// How much room the view has.
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
    // Senders keep their frames far below what 32 bits hold.
    let length = u32::try_from(1 + head.len() + bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(head);
    out.extend_from_slice(bytes);
}

/// The peer said something that is no frame: there is no going on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadViewFrame;

/// Turns bytes into frames.
#[derive(Debug, Default)]
pub struct ViewDecoder {
    buffer: Vec<u8>,
}

impl ViewDecoder {
    /// Takes bytes in.
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
    fn frames_arrive_as_they_were_sent_however_they_are_cut() {
        let size = ViewSize { rows: 24, columns: 300 };
        let said = [
            ToView::Snapshot { offset: 1 << 40, size, bytes: b"\x1b[H".to_vec() },
            ToView::Output { offset: 7, bytes: vec![0, 255] },
            ToView::Output { offset: 9, bytes: vec![] },
            ToView::Ended { code: Some(-1), signal: None },
            ToView::Ended { code: None, signal: Some(9) },
        ];
        let answered = [FromView::Input(b"ls\r".to_vec()), FromView::Size(size)];
        let mut stream = Vec::new();
        said.iter().for_each(|frame| frame.encode(&mut stream));
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
            assert_eq!(seen, said);
            let mut decoder = ViewDecoder::default();
            decoder.feed(&back);
            let seen = std::iter::from_fn(|| decoder.next_from_view().unwrap());
            assert_eq!(seen.collect::<Vec<_>>(), answered);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_without_end() {
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
