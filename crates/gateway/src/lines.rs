//! Bytes into lines, with a ceiling: what is longer is skipped to its end and counted.

/// Takes lines apart as their bytes come.
#[derive(Debug)]
pub(crate) struct Lines {
    held: Vec<u8>,
    /// Up to here there is no line end in what is held.
    searched: usize,
    limit: usize,
    /// The rest of a line that was too long is skipped.
    skipping: bool,
    skipped: u64,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Vec::new(), searched: 0, limit, skipping: false, skipped: 0 }
    }

    /// Lines that were too long.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes some bytes; `each` gets every line that is whole now, without its end.
    pub(crate) fn take(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        self.held.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.held[self.searched..]) {
            let end = self.searched + length;
            if std::mem::take(&mut self.skipping) || end - begin > self.limit {
                self.skipped += 1;
            } else {
                each(&self.held[begin..end]);
            }
            begin = end + 1;
            self.searched = begin;
        }
        self.held.drain(..begin);
        self.searched = self.held.len();
        if self.held.len() > self.limit {
            self.held = Vec::new();
            self.searched = 0;
            self.skipping = true;
        }
    }

    /// What stands after the last line end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        match std::mem::take(&mut self.skipping) {
            true => Vec::new(),
            false => std::mem::take(&mut self.held),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, pieces: &[&str], expected: &[&str], rest: &str, skipped: u64) {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            lines.take(piece.as_bytes(), |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
            });
        }
        assert_eq!(found, expected);
        assert_eq!(lines.skipped(), skipped);
        assert_eq!(lines.rest(), rest.as_bytes());
    }

    #[test]
    fn lines_of_all_pieces() {
        check(10, &["a\nb", "c\n", "\nd"], &["a", "bc", ""], "d", 0);
        check(10, &["a", "b", "\n"], &["ab"], "", 0);
    }

    #[test]
    fn what_is_too_long_is_skipped_to_its_end() {
        check(3, &["abcd\nx\n"], &["x"], "", 1);
        check(3, &["abc", "def", "ghi\nx\nabc"], &["x"], "abc", 1);
        check(3, &["abcdef", "gh"], &[], "", 0);
    }
}
