//! Output as plain text, for readers that want a stream and no screen.

use crate::parser::{Actions, Csi, Parser};

/// Blanks written for one move to the right: more is a move to somewhere else.
const MAX_BLANKS: usize = 80;

/// A sequence that is begun but not ended is looked for in this many bytes at the end of a piece.
pub const TAIL_BYTES: usize = 4 << 10;

/// Takes the escape sequences out of a stream, piece by piece. Line ends become `\n`; a carriage
/// return alone, or a jump to another row, begins a new line if there is text on this one; a
/// backspace takes back what was just printed.
#[derive(Debug)]
pub struct Stripper {
    parser: Parser,
    text: Text,
}

impl Default for Stripper {
    fn default() -> Self {
        Self { parser: Parser::new(), text: Text::default() }
    }
}

impl Stripper {
    /// Reads a piece and returns the text in it.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        self.text.out = String::with_capacity(bytes.len());
        self.parser.advance(bytes, &mut self.text);
        std::mem::take(&mut self.text.out)
    }

    /// Whether what was read ends outside of any character or sequence.
    #[must_use]
    pub fn is_ground(&self) -> bool {
        self.parser.is_ground()
    }
}

/// The text in some bytes, and in how many of them: a character or a sequence that is begun at
/// their end is left to whoever goes on from there.
#[must_use]
pub fn strip_complete(bytes: &[u8]) -> (String, usize) {
    let mut stripper = Stripper::default();
    let text = stripper.feed(bytes);
    if stripper.is_ground() {
        return (text, bytes.len());
    }
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(TAIL_BYTES));
    let mut stripper = Stripper::default();
    let _ = stripper.feed(head);
    let mut whole = (stripper.is_ground()).then_some(head.len());
    for (at, byte) in tail.iter().enumerate() {
        let _ = stripper.feed(std::slice::from_ref(byte));
        if stripper.is_ground() {
            whole = Some(head.len() + at + 1);
        }
    }
    match whole {
        Some(whole) => (Stripper::default().feed(&bytes[..whole]), whole),
        // Nothing but one long sequence.
        None => (text, bytes.len()),
    }
}

/// How many bytes belong to a character or a sequence that began in the bytes `before` them. Reading
/// from there on, no part of a sequence looks like text.
#[must_use]
pub fn partial_prefix(before: &[u8], bytes: &[u8]) -> usize {
    let mut stripper = Stripper::default();
    let _ = stripper.feed(before);
    let ends = |byte: &u8| {
        let is_ground = stripper.is_ground();
        let _ = stripper.feed(std::slice::from_ref(byte));
        is_ground
    };
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

#[derive(Debug, Default)]
struct Text {
    out: String,
    /// There is text on the line that the last character stands on.
    has_text: bool,
    /// The last thing was a carriage return.
    after_return: bool,
}

impl Text {
    fn new_line(&mut self) {
        if self.has_text {
            self.out.push('\n');
        }
        (self.has_text, self.after_return) = (false, false);
    }

    /// Before text: a carriage return that no line feed followed.
    fn before_text(&mut self) {
        if self.after_return {
            self.new_line();
        }
        self.has_text = true;
    }
}

impl Actions for Text {
    fn ascii(&mut self, text: &[u8]) {
        self.before_text();
        if let Ok(text) = std::str::from_utf8(text) {
            self.out.push_str(text);
        }
    }

    fn unicode(&mut self, text: &str) {
        self.before_text();
        self.out.extend(text.chars().filter(|c| !c.is_control()));
    }

    fn control(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0b | 0x0c => {
                self.out.push('\n');
                (self.has_text, self.after_return) = (false, false);
            }
            b'\r' => self.after_return = true,
            b'\t' => {
                self.before_text();
                self.out.push('\t');
            }
            0x08 if !self.out.ends_with('\n') => {
                self.out.pop();
            }
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        if intermediates.is_empty() && matches!(last, b'D' | b'E' | b'M' | b'c') {
            self.new_line();
        }
    }

    fn csi(&mut self, csi: &Csi) {
        match (csi.marker, csi.intermediate, csi.last) {
            (0, 0, b'C') => {
                let blanks = csi.count(0).min(MAX_BLANKS);
                self.out.extend(std::iter::repeat_n(' ', blanks));
            }
            (0, 0, b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'f') => self.new_line(),
            (b'?', 0, b'h' | b'l') if matches!(csi.get(0), 47 | 1047 | 1049) => self.new_line(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_at_the_end_is_left() {
        for (bytes, text, whole) in [
            (&b"plain"[..], "plain", 5),
            (b"a\x1b[31", "a", 1),
            (b"a\x1b[31mred\x1b", "ared", 9),
            (b"caf\xc3", "caf", 3),
            (b"\x1b]0;title", "", 0),
            (b"", "", 0),
        ] {
            assert_eq!(strip_complete(bytes), (text.to_owned(), whole));
        }
        let long = [b"text\x1b]0;".as_slice(), &[b'x'; 2 * TAIL_BYTES]].concat();
        assert_eq!(strip_complete(&long), ("text".to_owned(), long.len()));
    }
    #[test]
    fn bytes_of_what_began_before_them_are_counted() {
        let printed = "a\u{1b}[38;5;100mred\u{1b}]8;;http://host/\u{1b}\\link é".as_bytes();
        let link = printed.len() - "link é".len();
        for (at, text) in [
            (1, "redlink é"),
            (2, "redlink é"),
            (9, "redlink é"),
            (printed.len() - 1, ""),
            (link - 12, "link é"),
            (link, "link é"),
        ] {
            let (before, bytes) = printed.split_at(at);
            let rest = &bytes[partial_prefix(before, bytes)..];
            assert_eq!(strip_complete(rest).0, text, "from {at}");
        }
    }
}
