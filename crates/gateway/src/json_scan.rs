//! Reads a JSON text in one pass, without copying. It accepts less than JSON allows (names with
//! escapes and deep nesting are refused), and never more: what it refuses, the general parser
//! decides. `fuzz/targets/json_scan.rs` compares the two.

use std::ops::Range;

/// Nesting that is accepted: less than any parser behind it accepts.
const DEPTH: usize = 64;

/// A position in a text that must be JSON from there on. Every method returns `None` at anything
/// unusual, and the cursor is of no use then.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text, which must be UTF-8.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut cursor = Self { text, at: 0, depth: 0 };
        cursor.skip_space();
        cursor
    }

    /// Reads an object. `member` is called after each name and must read the value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        self.open(b'{')?;
        if self.close(b'}') {
            return Some(());
        }
        loop {
            let name = self.name()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            member(self, name)?;
            self.skip_space();
            if self.close(b'}') {
                return Some(());
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }

    /// Skips a value and returns its position.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.string()?,
            b'{' => self.object(|cursor, _| cursor.value().map(drop))?,
            b'[' => self.array()?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => self.number()?,
        }
        Some(start..self.at)
    }

    /// Where it is in the text.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Nothing follows.
    pub(crate) fn end(mut self) -> Option<()> {
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn open(&mut self, bracket: u8) -> Option<()> {
        self.expect(bracket)?;
        self.depth += 1;
        self.skip_space();
        (self.depth <= DEPTH).then_some(())
    }

    fn close(&mut self, bracket: u8) -> bool {
        let closed = self.expect(bracket).is_some();
        self.depth -= usize::from(closed);
        closed
    }

    fn array(&mut self) -> Option<()> {
        self.open(b'[')?;
        if self.close(b']') {
            return Some(());
        }
        loop {
            self.value()?;
            self.skip_space();
            if self.close(b']') {
                return Some(());
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }

    /// A member's name without escapes.
    fn name(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        self.string()?;
        let name = self.text.get(start..self.at - 1)?;
        memchr::memchr(b'\\', name).is_none().then_some(name)
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            self.at += plain_length(self.text.get(self.at..)?);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        self.at += 1;
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.text.get(self.at..)?.starts_with(literal).then(|| self.at += literal.len())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.expect(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.expect(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Bytes before the first quote, backslash or control character, eight at a time.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, _) = text.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_ne_bytes(*word);
        let quote = is_zero(word ^ (ONES * u64::from(b'"')));
        let backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        if quote | backslash | control != 0 {
            break;
        }
        at += 8;
    }
    let rest = text[at..].iter();
    at + rest.take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(text: &str) -> bool {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.value().is_some() && cursor.end().is_some()
    }

    #[test]
    fn what_is_accepted_is_json() {
        for text in [
            " {} ",
            "[]",
            "[1, -0.5e+3,[0]]",
            "{\"a\" : {\"b\":[true,false,null]}}",
            r#""a \" \\ \/ \b \u00e9 ü""#,
            "-12",
            "1E5",
            "\"0123456789abcdef\\n0123456789\"",
        ] {
            assert!(is_accepted(text), "{text}");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "{}}",
            "[1,]",
            "{,}",
            "{\"a\"}",
            "{\"a\":1,}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "truex",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a\nb\"",
            "\"01234567\n\"",
            "{a:1}",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "\u{feff}1",
        ] {
            assert!(!is_accepted(text), "{text}");
        }
        assert!(is_accepted(&("[".repeat(DEPTH) + &"]".repeat(DEPTH))));
        assert!(!is_accepted(&("[".repeat(DEPTH + 1) + &"]".repeat(DEPTH + 1))));
        // Left to the general parser.
        assert!(!is_accepted(r#"{"\u0061":1}"#));
    }

    #[test]
    fn members_are_read_in_one_pass() {
        let text = br#" {"a": {"x" : [1] }, "b":"y" } "#;
        let (mut x, mut b) = (0..0, 0..0);
        let mut cursor = Cursor::new(text);
        let read = cursor.object(|cursor, name| match name {
            b"a" => cursor.object(|cursor, _| cursor.value().map(|span| x = span)),
            _ => cursor.value().map(|span| b = span),
        });
        assert!(read.is_some() && cursor.end().is_some());
        assert_eq!((&text[x], &text[b]), (&b"[1]"[..], &b"\"y\""[..]));
    }
}
