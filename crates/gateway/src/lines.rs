//! Splits bytes into lines of bounded length; of longer lines only both ends are kept.

/// Bytes kept from the end of an oversized line.
const TAIL_BYTES: usize = 128;

/// Splits a stream into lines as bytes arrive.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// The prefix of the buffer without a line end.
    searched: usize,
    limit: usize,
    /// The rest of an oversized line is being skipped.
    skipping: bool,
    /// Bytes kept from the start of an oversized line.
    head_limit: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    long: Vec<LongLine>,
}

/// Both ends of an oversized line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongLine {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(limit: usize, head_limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            searched: 0,
            limit,
            skipping: false,
            head_limit,
            head: Vec::new(),
            tail: Vec::new(),
            long: Vec::new(),
        }
    }

    /// The oversized lines since the last call.
    pub(crate) fn take_long(&mut self) -> Vec<LongLine> {
        std::mem::take(&mut self.long)
    }

    /// Adds bytes; calls `each` with every complete line, without its end.
    pub(crate) fn take(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        self.buffer.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + length;
            if self.skipping || end - begin > self.limit {
                self.skip(begin, end);
                self.skipping = false;
                let (head, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
                self.long.push(LongLine { head, tail });
            } else {
                each(&self.buffer[begin..end]);
            }
            begin = end + 1;
            self.searched = begin;
        }
        self.buffer.drain(..begin);
        self.searched = self.buffer.len();
        if self.buffer.len() > self.limit {
            self.skip(0, self.buffer.len());
            self.buffer = Vec::new();
            self.searched = 0;
        }
    }

    /// Drops part of an oversized line.
    fn skip(&mut self, begin: usize, end: usize) {
        let part = &self.buffer[begin..end];
        if !std::mem::replace(&mut self.skipping, true) {
            self.head.extend_from_slice(&part[..part.len().min(self.head_limit)]);
        }
        self.tail.extend_from_slice(&part[part.len().saturating_sub(TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
    }

    /// The bytes after the last line end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        match std::mem::take(&mut self.skipping) {
            true => Vec::new(),
            false => std::mem::take(&mut self.buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, pieces: &[&str], expected: &[&str], rest: &str, long: &[(&str, &str)]) {
        let mut lines = Lines::new(limit, 2);
        let mut found = Vec::new();
        for piece in pieces {
            lines.take(piece.as_bytes(), |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
            });
        }
        assert_eq!(found, expected);
        let left: Vec<_> = lines.take_long();
        let left: Vec<_> = left
            .iter()
            .map(|line| [&line.head, &line.tail].map(|end| std::str::from_utf8(end).unwrap()))
            .collect();
        assert_eq!(left, long.iter().map(|(head, tail)| [*head, *tail]).collect::<Vec<_>>());
        assert_eq!(lines.rest(), rest.as_bytes());
    }

    #[test]
    fn lines_are_joined_across_pieces() {
        check(10, &["a\nb", "c\n", "\nd"], &["a", "bc", ""], "d", &[]);
        check(10, &["a", "b", "\n"], &["ab"], "", &[]);
    }

    #[test]
    fn oversized_lines_are_skipped_to_their_end() {
        check(3, &["abcd\nx\n"], &["x"], "", &[("ab", "abcd")]);
        check(3, &["abc", "def", "ghi\nx\nabc"], &["x"], "abc", &[("ab", "abcdefghi")]);
        check(3, &["abcdef", "gh"], &[], "", &[]);
    }
}
