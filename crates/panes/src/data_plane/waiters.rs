//! The callers that wait for a pattern in the output of one run.

use patterm_keeper::log::Reader;
use patterm_screen::Stripper;
use regex::Regex;
use tokio::sync::oneshot;

use super::waiter_groups::{Waiter, WaiterGroups};
use crate::offset::Offset;

/// A longer line is searched in parts of this size.
pub(super) const LINE_BYTES: usize = 64 << 10;

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchOutcome {
    /// The line that matched.
    Line(String),
    /// The process ended without a match.
    Over,
}

/// Where a line was found.
#[derive(Debug, Clone, Copy)]
pub(super) enum LineSource {
    /// In the output, before this offset.
    Output { before: Offset },
    /// On the screen, copied when this was the newest waiter.
    Screen { newest: u64 },
}

impl LineSource {
    fn counts_for(self, waiter: &Waiter) -> bool {
        match self {
            Self::Output { before } => waiter.from < before,
            Self::Screen { newest } => waiter.number <= newest,
        }
    }
}

/// The waiters of one run, and how far the output was searched for them.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    waiters: WaiterGroups,
    /// The number of the newest waiter.
    newest: u64,
    /// The output before this offset was searched.
    searched: Offset,
    stripper: Stripper,
    /// The text of the line that has not ended yet.
    line: String,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// The number of the newest waiter.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// The output before this offset was searched; `None` if nobody waits.
    pub(super) fn searched(&self) -> Option<Offset> {
        (!self.waiters.is_empty()).then_some(self.searched)
    }

    pub(super) fn add(
        &mut self,
        log: &Reader,
        pattern: Regex,
        from: Offset,
    ) -> (u64, oneshot::Receiver<MatchOutcome>) {
        if self.waiters.is_empty() {
            // The output was not searched for a while: begin where this waiter does, with the line that is
            // unfinished there.
            self.searched = from;
            self.stripper = Stripper::default();
            let text = self.stripper.feed(&unfinished_line(log, from));
            let unfinished = text.rsplit(['\n', '\r']).next().unwrap_or_default();
            unfinished.clone_into(&mut self.line);
        }
        let (answer, found) = oneshot::channel();
        self.newest += 1;
        let (number, anchored) = (self.newest, is_anchored(pattern.as_str()));
        self.waiters.add(Waiter { number, pattern, anchored, from, answer: Some(answer) });
        (number, found)
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.waiters.remove(number);
    }

    /// Searches the next part of the output, at most `limit` bytes and not beyond `end`; `true` if there is more.
    pub(super) fn search_output(&mut self, log: &Reader, end: Offset, limit: usize) -> bool {
        let began = self.searched;
        let most = usize::try_from(self.next_stop(end).bytes_since(began)).unwrap_or(usize::MAX);
        let copied = log.copy(began.get(), most.min(limit));
        if copied.offset > began.get() {
            // Output between the two was dropped, so the unfinished line does not continue here.
            self.stripper = Stripper::default();
            self.line.clear();
        }
        let searched = Offset::new(copied.end()).max(began);
        self.searched = searched;
        log.release(began.get(), searched.get());
        let text = self.stripper.feed(&copied.bytes);
        self.search_text(&text, searched);
        let unfinished = self.line.clone();
        if !self.waiters.is_empty() && !unfinished.trim_end().is_empty() {
            self.search_line(&unfinished, LineSource::Output { before: searched });
        }
        self.searched < end
    }

    /// The end of the next part: not beyond an offset from which somebody waits, so that each part is either all
    /// before or all after it.
    fn next_stop(&self, end: Offset) -> Offset {
        let starts = self.waiters.iter().map(|waiter| waiter.from);
        starts.filter(|from| *from > self.searched).fold(end, Offset::min)
    }

    /// Answers every waiter whose pattern matches the line and for which the line counts.
    pub(super) fn search_line(&mut self, line: &str, source: LineSource) {
        self.waiters.search(line, |waiter| {
            let answer = if source.counts_for(waiter) { waiter.answer.take() } else { None };
            let answered = answer.is_some();
            if let Some(answer) = answer {
                let _ = answer.send(MatchOutcome::Line(line.trim_end().to_owned()));
            }
            answered
        });
    }

    /// Searches printed text that ends at `end`. A line feed or a carriage return ends a line.
    fn search_text(&mut self, text: &str, end: Offset) {
        let mut line = std::mem::take(&mut self.line);
        line.push_str(text);
        let ended = memchr::memrchr2(b'\n', b'\r', line.as_bytes()).map_or(0, |end| end + 1);
        if self.may_match(&line[..ended]) {
            for line in line[..ended].split(['\n', '\r']) {
                self.search_printed_line(line, end);
            }
        }
        line.drain(..ended);
        if line.len() > LINE_BYTES {
            self.search_printed_line(&line, end);
            line.clear();
        }
        self.line = line;
    }

    /// Whether any line of a text can match. One search of the whole text is much cheaper than one per line, and
    /// mostly nothing matches. Anchored patterns need the lines themselves.
    fn may_match(&mut self, lines: &str) -> bool {
        let anchored = self.waiters.iter().any(|waiter| waiter.anchored);
        anchored || self.waiters.may_match(lines)
    }

    fn search_printed_line(&mut self, line: &str, end: Offset) {
        let line = line.trim_end();
        if !self.waiters.is_empty() && !line.is_empty() {
            self.search_line(line, LineSource::Output { before: end });
        }
    }

    /// Tells all waiters that nothing more will be printed.
    pub(super) fn end(&mut self) {
        for waiter in self.waiters.drain() {
            if let Some(answer) = waiter.answer {
                let _ = answer.send(MatchOutcome::Over);
            }
        }
    }
}

/// Whether a pattern may depend on where a line begins or ends. Word boundaries do not: a line feed is one too.
fn is_anchored(pattern: &str) -> bool {
    pattern.contains(['^', '$']) || ["\\A", "\\z"].iter().any(|anchor| pattern.contains(anchor))
}

/// The bytes before `offset` of the line that has not ended there.
fn unfinished_line(log: &Reader, offset: Offset) -> Vec<u8> {
    let offset = offset.get();
    let from = offset.saturating_sub(LINE_BYTES as u64).max(log.start());
    let copied = log.copy(from, usize::try_from(offset.saturating_sub(from)).unwrap_or(0));
    if copied.end() != offset {
        // Some of the output before it was dropped.
        return Vec::new();
    }
    let before = copied.bytes;
    match before.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => before[end + 1..].to_vec(),
        None if from == 0 => before,
        // Longer than a line that is searched as a whole.
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that patterns find in a text that comes in two pieces.
    fn found(patterns: &[&str], first: &str, second: &str) -> Vec<Option<String>> {
        let mut waiters = Waiters::default();
        let found: Vec<_> = patterns
            .iter()
            .map(|pattern| {
                let (answer, found) = oneshot::channel();
                waiters.waiters.add(Waiter {
                    number: 1,
                    pattern: Regex::new(pattern).unwrap(),
                    anchored: is_anchored(pattern),
                    from: Offset::START,
                    answer: Some(answer),
                });
                found
            })
            .collect();
        waiters.search_text(first, Offset::new(1));
        waiters.search_text(second, Offset::new(1));
        let line = |mut found: oneshot::Receiver<MatchOutcome>| match found.try_recv() {
            Ok(MatchOutcome::Line(line)) => Some(line),
            _ => None,
        };
        found.into_iter().map(line).collect()
    }

    #[test]
    fn a_line_is_found_among_any_others_and_wherever_the_output_is_cut() {
        let text = "one\rtwo words  \n\nport 80 \nthree\nport 8080\n";
        let cases = [
            ("two", Some("two words")),
            ("^two", Some("two words")),
            ("words$", Some("two words")),
            (r"\bwords\b", Some("two words")),
            (r"\Aport \d+\z", Some("port 80")),
            (r"port \d{4}", Some("port 8080")),
            (r"^$", None),
            (r"one\stwo", None),
            ("four", None),
        ];
        let patterns = cases.map(|(pattern, _)| pattern);
        let lines = cases.map(|(_, line)| line.map(str::to_owned));
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            for (pattern, line) in patterns.iter().zip(&lines) {
                assert_eq!(
                    found(&[pattern], first, second),
                    std::slice::from_ref(line),
                    "{pattern} cut at {cut}"
                );
            }
            assert_eq!(found(&patterns, first, second), lines, "all at once, cut at {cut}");
        }
    }
}
