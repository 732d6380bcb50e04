//! Removes queries from a program's output. The server has already answered them; if they reached the outer
//! terminal, its answers would come back as keys. Sequences that set the clipboard are removed, too.
//!
//! Sequences are parsed as terminals do it: an escape, CAN or SUB ends an incomplete one, other control
//! characters inside it act or are ignored, and only a sequence without them is passed on. C1 control
//! characters are never passed on.

/// A longer sequence is not held back until it is complete: its beginning tells what it is.
const SEQUENCE_BYTES: usize = 4096;

const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;

/// Filters output that arrives in chunks of any size.
#[derive(Debug, Default)]
pub(super) struct Filter {
    state: State,
    /// The incomplete sequence, without what terminals ignore in it.
    pending: Vec<u8>,
    /// The first byte of a character that may be a control character.
    lead: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After an escape, up to the byte that tells what kind of sequence it is.
    Escape,
    Csi,
    /// A string: OSC, DCS and others.
    String,
    /// A string that is too long to be held back; it is passed on or dropped as it arrives.
    Long {
        passes: bool,
    },
    /// After an escape in a string, which ends the string.
    End {
        long: Option<bool>,
    },
}

impl Filter {
    /// The part that may be passed on.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.state == State::Text && !self.lead {
                // Text is passed on as a whole up to the next byte that may begin a sequence.
                let text = memchr::memchr2(ESCAPE, 0xc2, rest).unwrap_or(rest.len());
                if text > 0 {
                    out.extend_from_slice(&rest[..text]);
                    rest = &rest[text..];
                    continue;
                }
            }
            rest = after;
            self.take(byte, &mut out);
        }
        out
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        // U+0080 to U+009F are C2 80 to C2 9F.
        if std::mem::take(&mut self.lead) {
            if (0x80..=0x9f).contains(&byte) {
                return;
            }
            self.step(0xc2, out);
        }
        match byte {
            0xc2 => self.lead = true,
            byte => self.step(byte, out),
        }
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        match (self.state, byte) {
            (State::Text, ESCAPE) => self.begin(),
            (State::Text, _) => out.push(byte),
            (State::String, ESCAPE) => self.state = State::End { long: None },
            (State::Long { passes }, ESCAPE) => self.state = State::End { long: Some(passes) },
            (State::End { .. }, b'\\') => self.end_string(b"\x1b\\", out),
            (State::End { .. }, _) => {
                // The string is abandoned, and another sequence begins.
                self.drop_string(out);
                self.begin();
                self.step(byte, out);
            }
            (_, CANCEL | SUBSTITUTE) => self.drop_string(out),
            (State::Escape | State::Csi, ESCAPE) => self.begin(),
            (State::Escape | State::Csi, 0..0x20) => out.push(byte),
            (_, 0x7f) => {}
            (State::Escape, _) => self.take_escape(byte, out),
            (State::Csi, _) => {
                self.pending.push(byte);
                if (0x40..=0x7e).contains(&byte) {
                    self.end(out);
                }
            }
            (State::String, BELL) if self.is_command() => self.end_string(&[BELL], out),
            (State::Long { .. }, BELL) if self.is_command() => self.end_string(&[BELL], out),
            (State::String | State::Long { .. }, 0..0x20) if self.is_command() => {}
            (State::String, _) => {
                self.pending.push(byte);
                if self.pending.len() > SEQUENCE_BYTES {
                    let passes = !is_unwanted(&self.pending);
                    if passes {
                        out.extend_from_slice(&self.pending);
                    }
                    self.state = State::Long { passes };
                }
            }
            (State::Long { passes }, _) => {
                if passes {
                    out.push(byte);
                }
            }
        }
    }

    fn begin(&mut self) {
        self.pending.clear();
        self.pending.push(ESCAPE);
        self.state = State::Escape;
    }

    fn take_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.pending.push(byte);
        match (self.pending.len(), byte) {
            (2, b'[') => self.state = State::Csi,
            (2, b']' | b'P' | b'_' | b'^' | b'X') => self.state = State::String,
            // Intermediate bytes, as in `ESC ( B`.
            (_, 0x20..=0x2f) if self.pending.len() < SEQUENCE_BYTES => {}
            _ => self.end(out),
        }
    }

    /// Whether it is an operating system command, which a bell ends as well.
    fn is_command(&self) -> bool {
        self.pending.get(1) == Some(&b']')
    }

    /// The sequence is complete.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.state = State::Text;
        let sequence = std::mem::take(&mut self.pending);
        if !is_unwanted(&sequence) {
            out.extend_from_slice(&sequence);
        }
    }

    fn end_string(&mut self, end: &[u8], out: &mut Vec<u8>) {
        let passes = match self.state {
            State::Long { passes } | State::End { long: Some(passes) } => passes,
            _ => {
                let passes = !is_unwanted(&self.pending);
                if passes {
                    out.extend_from_slice(&self.pending);
                }
                passes
            }
        };
        if passes {
            out.extend_from_slice(end);
        }
        self.pending.clear();
        self.state = State::Text;
    }

    /// Abandons an incomplete sequence; one that was passed on in part is cancelled in the output, too.
    fn drop_string(&mut self, out: &mut Vec<u8>) {
        if let State::Long { passes: true } | State::End { long: Some(true) } = self.state {
            out.push(CANCEL);
        }
        self.pending.clear();
        self.state = State::Text;
    }
}

/// Whether a sequence (a string without its terminator) is a query or sets the clipboard.
fn is_unwanted(sequence: &[u8]) -> bool {
    match sequence.get(1) {
        Some(b'[') => {
            let parameters = &sequence[2..sequence.len() - 1];
            match sequence.last() {
                Some(b'c' | b'n') => true,
                Some(b'p') => parameters.ends_with(b"$"),
                Some(b'q') => parameters.starts_with(b">"),
                Some(b'u') => parameters.starts_with(b"?"),
                Some(b't') => {
                    matches!(number(parameters), Some(11 | 13 | 14 | 15 | 16 | 18 | 19 | 20 | 21))
                }
                Some(b'x') => true,
                // Reports of the size in the program's input.
                Some(b'h') if parameters.starts_with(b"?") => parameters[1..]
                    .split(|byte| *byte == b';')
                    .any(|mode| number(mode) == Some(2048)),
                _ => false,
            }
        }
        Some(b']') => {
            let is_query = sequence.windows(2).any(|pair| pair == b";?");
            is_query || number(&sequence[2..]) == Some(52)
        }
        Some(b'P') => {
            let name = sequence[2..].trim_ascii_start();
            let name =
                name.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';')).unwrap_or(0);
            matches!(sequence[2..].get(name..name + 2), Some(b"+q" | b"$q"))
        }
        Some(b'Z') => true,
        _ => false,
    }
}

/// The number that a sequence begins with, leading zeros ignored.
fn number(parameters: &[u8]) -> Option<u32> {
    let first = parameters.split(|byte| matches!(byte, b';' | b':')).next()?;
    std::str::from_utf8(first).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &[u8], expected: &[u8]) {
        for step in [1, 2, 5, output.len()] {
            let mut filter = Filter::default();
            let seen: Vec<u8> = output.chunks(step).flat_map(|piece| filter.feed(piece)).collect();
            assert_eq!(
                seen.escape_ascii().to_string(),
                expected.escape_ascii().to_string(),
                "{} by {step}",
                output.escape_ascii()
            );
        }
    }

    #[test]
    fn only_queries_are_removed() {
        check(b"a\x1b[31mred\x1b[0m\r\n", b"a\x1b[31mred\x1b[0m\r\n");
        check(
            b"1\x1b[c2\x1b[>c3\x1b[6n4\x1b[?6n5\x1b[?2026$p6\x1b[>q7\x1b[?u8\x1b[18t9\x1b[?2048h0",
            b"1234567890",
        );
        check(b"a\x1b]11;?\x07b\x1b]10;?\x1b\\c\x1b]52;c;aGk=\x07d\x1bP+q544e\x1b\\e", b"abcde");
        let kept =
            b"\x1b]2;title\x07\x1b[2 q\x1b[!p\x1b[8;24;80t\x1b[>1u\x1b(B\x1b7x\x1bPq#0\x1b\\";
        check(kept, kept);
        check("ü\u{1f600}£".as_bytes(), "ü\u{1f600}£".as_bytes());
    }

    #[test]
    fn no_clipboard_sequence_passes() {
        let long = [b"\x1b]52;c;".as_slice(), &[b'A'; 3 * SEQUENCE_BYTES], b"\x07"].concat();
        let spellings: [&[u8]; 13] = [
            b"\x1b]052;c;aGk=\x07",
            b"\x1b[\x1b]52;c;aGk=\x07",
            b"\x1bP\x1b]52;c;aGk=\x1b\\",
            b"\x1b_x\x1b]52;c;aGk=\x07",
            b"\x1b]0;x\x1b]52;c;aGk=\x07",
            b"\x1b]\x0052;c;aGk=\x07",
            b"\x1b]5\x002;c;aGk=\x07",
            b"\x1b[3\x18\x1b]52;c;aGk=\x07",
            b"\x1b\x1b]52;c;aGk=\x07",
            b"\x1b\x7f]52;c;aGk=\x07",
            b"\x1bP\x07\x1b]52;c;aGk=\x07\x1b\\",
            "\u{9d}52;c;\u{9c}".as_bytes(),
            &long,
        ];
        for spelling in spellings {
            let mut filter = Filter::default();
            let seen = filter.feed(&[spelling, b"\x18 end"].concat());
            let is_harmless = !seen.windows(2).any(|pair| matches!(pair, b"\x1b]" | b"\xc2\x9d"));
            assert!(is_harmless, "{}: {}", spelling.escape_ascii(), seen.escape_ascii());
            assert!(seen.ends_with(b" end"), "{}", spelling.escape_ascii());
        }
    }

    #[test]
    fn a_long_string_passes_in_pieces() {
        let picture = [b"\x1bPq".as_slice(), &[b'~'; 2 * SEQUENCE_BYTES], b"\x1b\\after"].concat();
        check(&picture, &picture);
        let broken = [b"\x1b]2;".as_slice(), &[b'a'; 2 * SEQUENCE_BYTES], b"\x1b[31mred"].concat();
        let expected = [b"\x1b]2;".as_slice(), &[b'a'; 2 * SEQUENCE_BYTES], b"\x18\x1b[31mred"];
        check(&broken, &expected.concat());
    }
}
