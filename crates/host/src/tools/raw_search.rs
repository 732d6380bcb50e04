//! Searches a log's bytes in place, at the speed of the regular expression engine.

use patterm_keeper::log::Reader;
use regex::bytes::Regex;

use super::search_output::{Hits, Match, Page};

/// A longer line is truncated.
const SHOWN_BYTES: usize = 4 << 10;

/// The state of a search.
struct Search<'a> {
    pattern: &'a Regex,
    context: usize,
    hits: Hits,
    /// Lines before the current piece.
    lines: u64,
}

/// Finds matching lines: those of a page, and their total number.
pub(super) fn search(log: &Reader, pattern: &Regex, page: Page, context: usize) -> Hits {
    let mut search = Search { pattern, context, hits: Hits::of(page), lines: 0 };
    let mut at = log.start();
    // An incomplete line at the end of a piece is kept for the next one.
    let mut rest: Vec<u8> = Vec::new();
    log.visit(0, usize::MAX, |offset, piece| {
        if offset != at {
            // There is a gap: an incomplete line before it does not continue here.
            search.search_lines(&rest, at - rest.len() as u64);
            rest.clear();
            at = offset;
        }
        let begin = at - rest.len() as u64;
        at += piece.len() as u64;
        let Some(first) = memchr::memchr(b'\n', piece) else {
            rest.extend_from_slice(piece);
            return true;
        };
        let (head, body) = piece.split_at(first + 1);
        let whole = memchr::memrchr(b'\n', body).map_or(0, |last| last + 1);
        rest.extend_from_slice(head);
        let body_begin = begin + rest.len() as u64;
        search.search_lines(&rest, begin);
        search.search_lines(&body[..whole], body_begin);
        rest.clear();
        rest.extend_from_slice(&body[whole..]);
        true
    });
    log.release(log.start(), at);
    let begin = at - rest.len() as u64;
    search.search_lines(&rest, begin);
    search.hits
}

impl Search<'_> {
    /// Searches whole lines, the first of which begins at `begin`.
    fn search_lines(&mut self, text: &[u8], begin: u64) {
        let (mut from, mut counted) = (0, 0);
        while from < text.len() {
            let Some(found) = self.pattern.find_at(text, from) else { break };
            let start = memchr::memrchr(b'\n', &text[..found.start()]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
            if found.start() > end || start >= text.len() {
                break;
            }
            from = end + 1;
            // If the pattern also matches line ends, a match may begin in the line
            // before, which does not match by itself.
            if !self.pattern.is_match(&text[start..end]) {
                continue;
            }
            self.lines += count_lines(&text[counted..start]);
            counted = start;
            let (line, context, offset) = (self.lines + 1, self.context, begin + start as u64);
            self.hits.hit(offset, || Match {
                line,
                offset,
                text: show(around(text, start, end, context)),
            });
        }
        self.lines += count_lines(&text[counted..]);
    }
}

/// A line with the lines around it.
fn around(text: &[u8], mut start: usize, mut end: usize, context: usize) -> &[u8] {
    for _ in 0..context {
        if start > 0 {
            start = memchr::memrchr(b'\n', &text[..start - 1]).map_or(0, |at| at + 1);
        }
        if end < text.len() {
            let next = memchr::memchr(b'\n', &text[end + 1..]);
            end = next.map_or(text.len(), |at| end + 1 + at);
        }
    }
    &text[start..end]
}

fn show(line: &[u8]) -> String {
    let shown = &line[..line.len().min(SHOWN_BYTES)];
    String::from_utf8_lossy(shown).trim_end_matches(['\r', '\n']).to_owned()
}

fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;

    use super::super::paging::Order;
    use super::super::pattern::compile_bytes;
    use super::*;

    #[test]
    fn a_pattern_that_matches_line_ends_finds_only_lines_that_match_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        let source = dir.path().join("source");
        std::fs::write(&source, "bar\r\n  foo\r\nfoo\r\n\r\n foo").unwrap();
        log.make_room().unwrap();
        log.read_from(std::fs::File::open(&source).unwrap(), 16 << 10).unwrap();
        let found = |pattern: &str| {
            let pattern = compile_bytes(pattern).unwrap();
            let page = Page { from: None, order: Order::First, limit: 10 };
            let hits = search(&log.reader(), &pattern, page, 0);
            hits.matches.into_iter().map(|(_, found)| found.line).collect::<Vec<_>>()
        };
        assert_eq!(found("\\s+foo"), [2, 5]);
        assert_eq!(found("^foo$"), [3]);
        assert_eq!(found("bar$"), [1]);
    }

    #[test]
    fn lines_are_found_across_files_with_their_numbers_and_offsets() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        let text: String = (0..40_000).map(|n| format!("line {n}\r\n")).collect();
        let source = dir.path().join("source");
        std::fs::write(&source, &text).unwrap();
        let file = std::fs::File::open(&source).unwrap();
        loop {
            if !log.has_room() {
                log.make_room().unwrap();
            }
            if log.read_from(&file, 16 << 10).unwrap() == 0 {
                break;
            }
        }
        let reader = log.reader();
        let check = |pattern: &str, limit: usize, context: usize| {
            let pattern = compile_bytes(pattern).unwrap();
            let page = Page { from: None, order: Order::First, limit };
            let hits = search(&reader, &pattern, page, context);
            let matches: Vec<_> = hits.matches.into_iter().map(|(_, found)| found).collect();
            (matches, hits.total)
        };
        let (found, total) = check("^line 31234$|^line 777x$", 20, 0);
        assert_eq!(total, 1, "the carriage return is part of the line's end");
        assert_eq!(found[0].line, 31_235);
        assert_eq!(found[0].text, "line 31234");
        assert_eq!(found[0].offset as usize, text.find("line 31234\r").unwrap());
        let (found, total) = check("7", 5, 0);
        assert_eq!(total, (0..40_000).filter(|n| n.to_string().contains('7')).count() as u64);
        assert_eq!(found.iter().map(|m| m.line).collect::<Vec<_>>(), [8, 18, 28, 38, 48]);
        let (found, _) = check("line 100\r", 1, 1);
        assert_eq!(found[0].text, "line 99\r\nline 100\r\nline 101");
        assert_eq!(check("nothing like it", 5, 0), (vec![], 0));
        assert_eq!(check("x*", 3, 0).1, 40_000, "an empty match is one for each line");
    }
}
