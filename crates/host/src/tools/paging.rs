//! Reading a long output in parts, from its beginning or from its end.

use patterm_keeper::log::{LogBytes, Reader};
use schemars::JsonSchema;
use serde::Deserialize;

/// Which end of the output a part is taken from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// The oldest part.
    #[default]
    First,
    /// The newest part.
    Last,
}

/// Bytes of the output between two offsets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The offset of the first byte.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// Requested bytes that no longer exist.
    pub(super) dropped: u64,
    /// Whether the requested offset is beyond the end, so that this part is at the end.
    pub(super) clamped: bool,
    /// Whether there is more in that direction.
    pub(super) more: bool,
    /// Whether the bytes after the last one are lost.
    pub(super) ends_at_gap: bool,
}

/// A request for a part of an output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The first offset.
    pub(super) since: u64,
    /// The end offset; by default, the end of the output.
    pub(super) until: Option<u64>,
    /// The maximum number of bytes.
    pub(super) most: u64,
    pub(super) order: Order,
}

impl Wanted {
    /// The oldest part from an offset on.
    pub(super) fn from(since: u64, most: u64) -> Self {
        Self { since, until: None, most, order: Order::First }
    }

    /// Copies it from a log.
    pub(super) fn take(self, log: &Reader) -> Part {
        let end = log.end();
        let until = self.until.map_or(end, |until| until.min(end));
        let since = self.since.min(until);
        let clamped = self.since > end;
        let (begin, copied) = match self.order {
            Order::First => {
                let most = usize::try_from(self.most.min(until - since)).unwrap_or(usize::MAX);
                (since, log.copy(since, most))
            }
            Order::Last => self.newest(log, since, until),
        };
        let ends_at_gap = copied.ends_at_gap;
        let (mut offset, mut bytes) = (copied.offset, copied.bytes);
        // The log may have lost its beginning in the meantime; then the copy starts
        // later and may exceed the limit.
        let surplus = (offset + bytes.len() as u64).saturating_sub(until.max(offset));
        bytes.truncate(bytes.len() - usize::try_from(surplus).unwrap_or(bytes.len()));
        let more = match self.order {
            Order::First => offset + (bytes.len() as u64) < until,
            Order::Last => {
                let cut = if begin > since { to_line_start(&bytes) } else { 0 };
                bytes.drain(..cut);
                offset += cut as u64;
                offset > since.max(log.start())
            }
        };
        let dropped = match self.order {
            Order::First => offset.saturating_sub(since),
            Order::Last => log.start().saturating_sub(since),
        };
        Part { offset, bytes, dropped, clamped, more, ends_at_gap }
    }

    /// The newest contiguous bytes between two offsets, and the offset at which the search began.
    fn newest(self, log: &Reader, since: u64, until: u64) -> (u64, LogBytes) {
        let last = log.end_before(until).max(since);
        let begin = since.max(last.saturating_sub(self.most)).max(log.start().min(last));
        let copy = |from: u64| log.copy(from, usize::try_from(last - from).unwrap_or(usize::MAX));
        let mut copied = copy(begin);
        // A copy ends at a gap; the bytes after it are newer.
        while copied.ends_at_gap && copied.end() < last {
            let next = copy(copied.end());
            if next.bytes.is_empty() || next.offset >= last {
                break;
            }
            copied = next;
        }
        copied.ends_at_gap |= last < until;
        (begin, copied)
    }
}

/// The start of the first whole line, so that no part begins inside a character or a sequence;
/// 0 if there is none.
fn to_line_start(bytes: &[u8]) -> usize {
    let first = memchr::memchr(b'\n', bytes).map(|at| at + 1);
    first.filter(|at| *at < bytes.len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;

    use super::*;

    fn log_of(text: &str) -> (tempfile::TempDir, Log) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(&dir.path().join("log"), 64 << 20).unwrap();
        print(&dir, &mut log, text);
        (dir, log)
    }

    /// Writes a text into a new file of the log.
    fn print(dir: &tempfile::TempDir, log: &mut Log, text: &str) {
        log.make_room().unwrap();
        let source = dir.path().join("source");
        std::fs::write(&source, text).unwrap();
        let file = std::fs::File::open(&source).unwrap();
        while log.read_from(&file, 16 << 10).unwrap() > 0 {}
    }

    #[test]
    fn parts_from_the_end_include_everything_around_a_gap() {
        let (dir, mut log) = log_of("one\ntwo\n");
        log.skip_to(500);
        print(&dir, &mut log, "three\nfour\n");
        // More than everything, less than the gap, and less than the text after it.
        for most in [1_000, 100, 7] {
            let (mut parts, mut until) = (Vec::new(), None);
            loop {
                let wanted = Wanted { since: 0, until, most, order: Order::Last };
                let part = wanted.take(&log.reader());
                assert!(!part.bytes.is_empty(), "no progress: {part:?} after {parts:?}");
                until = Some(part.offset);
                let before_the_gap = part.offset + part.bytes.len() as u64 == 8;
                assert_eq!(part.ends_at_gap, before_the_gap);
                parts.insert(0, (part.offset, String::from_utf8(part.bytes).unwrap()));
                if !part.more {
                    break;
                }
            }
            assert_eq!(parts.last().unwrap().0 + parts.last().unwrap().1.len() as u64, 511);
            let whole: String = parts.iter().map(|(_, text)| &**text).collect();
            assert_eq!(whole, "one\ntwo\nthree\nfour\n", "at most {most}");
        }
    }

    #[test]
    fn the_newest_part_before_a_gap_at_the_end_is_found() {
        let (_dir, mut log) = log_of("one\ntwo\n");
        log.skip_to(500);
        let wanted = Wanted { since: 0, until: None, most: 100, order: Order::Last };
        let part = wanted.take(&log.reader());
        assert_eq!((part.offset, &*part.bytes, part.more), (0, &b"one\ntwo\n"[..], false));
        assert!(part.ends_at_gap);
    }

    #[test]
    fn parts_from_the_end_add_up_to_the_whole() {
        let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
        let (_dir, log) = log_of(&text);
        let mut whole = String::new();
        let mut until = None;
        loop {
            let wanted = Wanted { since: 0, until, most: 100, order: Order::Last };
            let part = wanted.take(&log.reader());
            let piece = String::from_utf8(part.bytes).unwrap();
            assert!(piece.starts_with("line ") && piece.len() <= 100, "{piece:?}");
            whole.insert_str(0, &piece);
            until = Some(part.offset);
            if !part.more {
                break;
            }
        }
        assert_eq!(whole, text);
    }

    #[test]
    fn parts_from_the_beginning_add_up_to_the_whole() {
        let text = "0123456789".repeat(10);
        let (_dir, log) = log_of(&text);
        let (mut whole, mut since) = (Vec::new(), 0);
        loop {
            let part = Wanted::from(since, 7).take(&log.reader());
            assert_eq!((part.offset, part.dropped, part.clamped), (since, 0, false));
            since += part.bytes.len() as u64;
            whole.extend(part.bytes);
            if !part.more {
                break;
            }
        }
        assert_eq!(whole, text.as_bytes());
    }

    #[test]
    fn an_offset_beyond_the_end_is_clamped_and_reported() {
        let (_dir, log) = log_of("abc");
        let part = Wanted::from(1_000, 10).take(&log.reader());
        assert_eq!((part.offset, part.bytes.len(), part.clamped, part.more), (3, 0, true, false));
        let part = Wanted::from(3, 10).take(&log.reader());
        assert_eq!((part.offset, part.clamped), (3, false));
    }
}
