//! Takes questions out of a program's output. The server has answered them already; were they to
//! reach the outer terminal, its answers would come back as keys. What would change the clipboard
//! of the person goes, too.

/// A sequence longer than this is passed on as it is: no question is.
const SEQUENCE_BYTES: usize = 4096;

/// Cuts sequences out across pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// A sequence that has begun, from its escape on.
    pending: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// It goes on.
    Open,
    /// It is whole.
    Whole,
}

impl Filter {
    /// What may be passed on.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.pending.is_empty() && byte != 0x1b {
                // Text passes in one go up to the next escape.
                let text = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
                out.extend_from_slice(&rest[..text]);
                rest = &rest[text..];
                continue;
            }
            rest = after;
            self.pending.push(byte);
            let whole = shape(&self.pending) == Shape::Whole;
            if whole || self.pending.len() > SEQUENCE_BYTES {
                let sequence = std::mem::take(&mut self.pending);
                if !(whole && is_unwanted(&sequence)) {
                    out.extend_from_slice(&sequence);
                }
            }
        }
        out
    }
}

fn shape(sequence: &[u8]) -> Shape {
    let ended = match sequence.get(1) {
        None => false,
        Some(b'[') => {
            sequence.len() > 2 && sequence.last().is_some_and(|b| (0x40..=0x7e).contains(b))
        }
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            sequence.ends_with(b"\x07") || (sequence.len() > 3 && sequence.ends_with(b"\x1b\\"))
        }
        Some(0x20..=0x2f) => sequence.last().is_some_and(|b| (0x30..=0x7e).contains(b)),
        Some(_) => true,
    };
    if ended { Shape::Whole } else { Shape::Open }
}

/// Whether a sequence asks the terminal something, or sets its clipboard.
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
                    let first = parameters.split(|b| *b == b';').next().unwrap_or_default();
                    matches!(
                        first,
                        b"11" | b"13" | b"14" | b"15" | b"16" | b"18" | b"19" | b"20" | b"21"
                    )
                }
                Some(b'x') => true,
                _ => false,
            }
        }
        Some(b']') => {
            let asks = sequence.windows(2).any(|pair| pair == b";?");
            asks || sequence.starts_with(b"\x1b]52;")
        }
        Some(b'P') => sequence.starts_with(b"\x1bP+q") || sequence.starts_with(b"\x1bP$q"),
        Some(b'Z') => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &[u8], expected: &[u8]) {
        for step in [1, 2, 5, output.len()] {
            let mut filter = Filter::default();
            let seen: Vec<u8> = output.chunks(step).flat_map(|piece| filter.feed(piece)).collect();
            assert_eq!(seen, expected, "{} by {step}", output.escape_ascii());
        }
    }

    #[test]
    fn questions_go_and_everything_else_stays() {
        check(b"a\x1b[31mred\x1b[0m\r\n", b"a\x1b[31mred\x1b[0m\r\n");
        check(
            b"1\x1b[c2\x1b[>c3\x1b[6n4\x1b[?6n5\x1b[?2026$p6\x1b[>q7\x1b[?u8\x1b[18t9",
            b"123456789",
        );
        check(b"a\x1b]11;?\x07b\x1b]10;?\x1b\\c\x1b]52;c;aGk=\x07d\x1bP+q544e\x1b\\e", b"abcde");
        check(
            b"\x1b]2;title\x07\x1b[2 q\x1b[!p\x1b[8;24;80t\x1b[>1u\x1b(B\x1b7x",
            b"\x1b]2;title\x07\x1b[2 q\x1b[!p\x1b[8;24;80t\x1b[>1u\x1b(B\x1b7x",
        );
        check("ü\u{1f600}".as_bytes(), "ü\u{1f600}".as_bytes());
    }
}
