//! Lines with a text in the output of several processes, nearest to a moment.

use patterm_wire::past::{PastDirection, PastPlace};

use super::found::short;
use super::process::PastProcess;
use crate::log_lines::{Begin, LineSource};

/// Bytes of a log that are searched at once, backwards from a place.
const PART_BYTES: u64 = 1 << 20;

/// A line that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundLine {
    process_id: String,
    text: String,
    /// Where it ends.
    end: u64,
    pub(super) at_ms: u64,
}

impl FoundLine {
    pub(super) fn place(self) -> PastPlace {
        let text = short(&self.text);
        PastPlace { process_id: Some(self.process_id), offset: Some(self.end), kind: None, text }
    }
}

/// The nearest line with a text that was printed before or after a time.
pub(super) fn nearest(
    processes: &[PastProcess],
    from_ms: u64,
    text: &str,
    direction: PastDirection,
) -> Option<FoundLine> {
    if text.is_empty() {
        return None;
    }
    let found = processes.iter().filter_map(|process| {
        let search = LineSearch { process, text };
        let from = process.offset_at(from_ms);
        match direction {
            PastDirection::Back => search.before(from, from_ms),
            PastDirection::Forward => search.after(from, from_ms),
        }
    });
    match direction {
        PastDirection::Back => found.max_by_key(|line| line.at_ms),
        PastDirection::Forward => found.min_by_key(|line| line.at_ms),
    }
}

struct LineSearch<'a> {
    process: &'a PastProcess,
    text: &'a str,
}

impl LineSearch<'_> {
    /// The last line before a place that was printed before a time.
    fn before(&self, end: u64, before_ms: u64) -> Option<FoundLine> {
        let mut until = end;
        while until > self.process.run.log.start() {
            let from = until.saturating_sub(PART_BYTES);
            let mut found = None;
            self.lines(from, |line| {
                let is_before = line.end < until;
                if line.at_ms < before_ms && self.matches(&line) {
                    found = Some(line);
                }
                is_before
            });
            if found.is_some() {
                return found;
            }
            until = from;
        }
        None
    }

    /// The first line from a place on that was printed after a time.
    fn after(&self, from: u64, after_ms: u64) -> Option<FoundLine> {
        let mut found = None;
        self.lines(from, |line| {
            if line.at_ms > after_ms && self.matches(&line) {
                found = Some(line);
            }
            found.is_none()
        });
        found
    }

    /// Passes the lines from a place on, until `take` returns `false`.
    fn lines(&self, from: u64, mut take: impl FnMut(FoundLine) -> bool) {
        let log = self.process.run.log.clone();
        let mut source = LineSource::new(log, Begin::At(from), true);
        source.stop_at_end();
        loop {
            source.fill(true);
            let Some(line) = source.pop() else { return };
            let line = FoundLine {
                process_id: self.process.id.clone(),
                text: line.texts.join(" "),
                end: line.end,
                at_ms: line.time_ms.unwrap_or(0),
            };
            if !take(line) {
                return;
            }
        }
    }

    fn matches(&self, line: &FoundLine) -> bool {
        match self.text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => line.text.contains(self.text),
            false => line.text.to_ascii_lowercase().contains(self.text),
        }
    }
}
