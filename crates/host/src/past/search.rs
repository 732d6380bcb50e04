//! Lines with a text in the output of several processes, nearest to a moment.

use std::sync::Arc;

use patterm_panes::data_plane::ProcessRun;
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
    pub(super) at_ms: u64,
}

impl FoundLine {
    pub(super) fn place(self) -> PastPlace {
        PastPlace { process_id: Some(self.process_id), kind: None, text: short(&self.text) }
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
        let search = LineSearch { run: &process.run, text };
        let (text, at_ms) = match direction {
            PastDirection::Back => search.before(process.offset_at(from_ms), from_ms)?,
            PastDirection::Forward => search.after(process.offset_at(from_ms), from_ms)?,
        };
        Some(FoundLine { process_id: process.id.clone(), text, at_ms })
    });
    match direction {
        PastDirection::Back => found.max_by_key(|line| line.at_ms),
        PastDirection::Forward => found.min_by_key(|line| line.at_ms),
    }
}

struct LineSearch<'a> {
    run: &'a Arc<ProcessRun>,
    text: &'a str,
}

impl LineSearch<'_> {
    /// The last line before a place that was printed before a time.
    fn before(&self, end: u64, before_ms: u64) -> Option<(String, u64)> {
        let mut until = end;
        while until > self.run.log.start() {
            let from = until.saturating_sub(PART_BYTES);
            let mut found = None;
            self.lines(from, |line, at_ms, line_end| {
                if at_ms < before_ms && self.matches(&line) {
                    found = Some((line, at_ms));
                }
                line_end < until
            });
            if found.is_some() {
                return found;
            }
            until = from;
        }
        None
    }

    /// The first line from a place on that was printed after a time.
    fn after(&self, from: u64, after_ms: u64) -> Option<(String, u64)> {
        let mut found = None;
        self.lines(from, |line, at_ms, _| {
            if at_ms > after_ms && self.matches(&line) {
                found = Some((line, at_ms));
            }
            found.is_none()
        });
        found
    }

    /// Passes the lines from a place on, each with its time and its end, until `take` returns `false`.
    fn lines(&self, from: u64, mut take: impl FnMut(String, u64, u64) -> bool) {
        let mut source = LineSource::new(self.run.log.clone(), Begin::At(from), true);
        source.stop_at_end();
        loop {
            source.fill(true);
            let Some(line) = source.pop() else { return };
            let at_ms = line.time_ms.unwrap_or(0);
            if !take(line.texts.join(" "), at_ms, line.end) {
                return;
            }
        }
    }

    fn matches(&self, line: &str) -> bool {
        match self.text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => line.contains(self.text),
            false => line.to_ascii_lowercase().contains(self.text),
        }
    }
}
