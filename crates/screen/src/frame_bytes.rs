//! The bytes of a key frame: numbers, flags and texts, one after the other.

use crate::row_record::put_number;

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(crate) struct FrameWriter {
    pub(crate) bytes: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn number(&mut self, number: u64) {
        put_number(&mut self.bytes, number);
    }

    pub(crate) fn size(&mut self, number: usize) {
        self.number(number as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    pub(crate) fn character(&mut self, character: char) {
        let mut buffer = [0; 4];
        self.bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.size(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Bytes that are being read; `None` for what was not written like this.
#[derive(Debug)]
pub(crate) struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// A number up to `most`.
    pub(crate) fn at_most(&mut self, most: usize) -> Option<usize> {
        self.size().filter(|number| *number <= most)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn character(&mut self) -> Option<char> {
        let length = match self.rest.first()? {
            0..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        let (character, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        str::from_utf8(character).ok()?.chars().next()
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let length = self.size()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
