//! The lines of one process, read from its log with their times.

use std::collections::VecDeque;

use patterm_keeper::log::{Reader, TimeMark, time_at};
use patterm_screen::{Stripper, strip_complete};

/// Bytes read from a log at once. With many processes each has this much in memory.
const READ_BYTES: usize = 16 << 10;

/// A longer line is divided: nobody reads it, and it must fit into memory for each process.
const LINE_BYTES: usize = 64 << 10;

/// Where to begin to read a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// At this offset.
    At(u64),
    /// With the last lines, and not before a time; everything without both.
    Last { lines: Option<u64>, since_ms: Option<u64> },
}

/// A line of the output. Carriage returns and cursor movements may divide its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceLine {
    pub(crate) texts: Vec<String>,
    pub(crate) time_ms: Option<u64>,
    /// The offset of the next line.
    pub(crate) end: u64,
    /// Bytes that are lost before it.
    pub(crate) lost: u64,
}

/// Reads the lines of a process.
#[derive(Debug)]
pub(crate) struct LineSource {
    log: Reader,
    /// The next byte to read.
    at: u64,
    /// The line that is not complete.
    partial: Vec<u8>,
    /// Bytes that are lost before it.
    lost: u64,
    /// A run begins here: a line never continues after it.
    boundary: u64,
    /// Nothing is read from here on.
    until: u64,
    ready: VecDeque<SourceLine>,
}

impl LineSource {
    /// Begins to read. The last line of a process that is `over` counts even if it has no line end.
    pub(crate) fn new(log: Reader, begin: Begin, over: bool) -> Self {
        let at = match begin {
            Begin::At(offset) => offset,
            Begin::Last { lines, since_ms } => {
                let last = lines.map_or(0, |lines| start_of_last(&log, lines, over));
                let since = since_ms.map_or(0, |since_ms| start_since(&log, since_ms));
                last.max(since).max(log.start())
            }
        };
        let (partial, ready) = (Vec::new(), VecDeque::new());
        Self { log, at, partial, lost: 0, boundary: 0, until: u64::MAX, ready }
    }

    /// Reads only what there is now, however fast more is printed.
    pub(crate) fn stop_at_end(&mut self) {
        self.until = self.log.end();
    }

    /// Continues with the log of the process's current run, which began at an offset.
    pub(crate) fn continue_with(&mut self, log: Reader, run_offset: u64) {
        (self.log, self.boundary) = (log, run_offset);
    }

    /// The offset of the line after those that are ready.
    pub(crate) fn next_offset(&self) -> u64 {
        self.at.saturating_sub(self.partial.len() as u64)
    }

    /// The offset up to which the log was read.
    pub(crate) fn read(&self) -> u64 {
        self.at
    }

    /// The time of the next line that is ready; 0 if it is unknown.
    pub(crate) fn next_time(&self) -> Option<u64> {
        Some(self.ready.front()?.time_ms.unwrap_or(0))
    }

    /// Takes the next line that is ready.
    pub(crate) fn pop(&mut self) -> Option<SourceLine> {
        self.ready.pop_front()
    }

    /// Reads until a line is ready, or to the end. The last line of a process that is `over` is complete.
    pub(crate) fn fill(&mut self, over: bool) {
        while self.ready.is_empty() {
            if self.at == self.boundary {
                self.finish_line();
            }
            let next = if self.boundary > self.at { self.boundary } else { u64::MAX };
            let left = usize::try_from(next.min(self.until).saturating_sub(self.at));
            let copied = self.log.copy(self.at, left.unwrap_or(READ_BYTES).min(READ_BYTES));
            if copied.offset > self.at {
                self.finish_line();
                self.lost += copied.offset - self.at;
                self.at = copied.offset;
            }
            if copied.bytes.is_empty() {
                if over {
                    self.finish_line();
                }
                return;
            }
            self.take(&copied.bytes);
        }
    }

    /// Divides bytes into lines.
    fn take(&mut self, bytes: &[u8]) {
        let marks = self.log.times(self.at, self.at + bytes.len() as u64);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            self.at += piece.len() as u64;
            if piece.ends_with(b"\n") {
                self.push(self.partial.len(), &marks);
            }
            while self.partial.len() > LINE_BYTES {
                // Not inside of a character or a sequence.
                let (_, whole) = strip_complete(&self.partial[..LINE_BYTES]);
                self.push(whole.max(1), &marks);
            }
        }
    }

    /// The line that is not complete has no more bytes.
    fn finish_line(&mut self) {
        if !self.partial.is_empty() {
            let marks = self.log.times(self.at - 1, self.at);
            self.push(self.partial.len(), &marks);
        }
    }

    /// Makes a line of the first bytes of those that are not yet in one.
    fn push(&mut self, length: usize, marks: &[TimeMark]) {
        let rest = self.partial.split_off(length);
        let raw = std::mem::replace(&mut self.partial, rest);
        let end = self.at - self.partial.len() as u64;
        let lost = std::mem::take(&mut self.lost);
        let time_ms = time_at(marks, end - 1);
        self.ready.push_back(SourceLine { texts: texts(&raw), time_ms, end, lost });
    }
}

/// The text of a line. What carriage returns overwrite is left out, as on a terminal; text at several places of the
/// screen comes in several parts.
fn texts(raw: &[u8]) -> Vec<String> {
    let shown = raw.split(|byte| *byte == b'\r').rev().map(|piece| {
        let text = Stripper::default().feed(piece);
        text.split('\n').filter(|text| !text.trim().is_empty()).map(str::to_owned).collect()
    });
    let shown = shown.into_iter().find(|texts: &Vec<String>| !texts.is_empty());
    shown.unwrap_or_else(|| vec![String::new()])
}

/// The offset of the last lines.
fn start_of_last(log: &Reader, lines: u64, over: bool) -> u64 {
    let mut until = log.end();
    // The end of the line before them is searched for. An unfinished line counts only if it stays so.
    let last = log.copy(until.saturating_sub(1), 1);
    let counts_rest = over && last.bytes.first().is_some_and(|byte| *byte != b'\n');
    let mut left = if counts_rest { lines } else { lines.saturating_add(1) };
    if left == 0 {
        return until;
    }
    while until > log.start() {
        let from = until.saturating_sub(LINE_BYTES as u64).max(log.start());
        let copied = log.copy(from, usize::try_from(until - from).unwrap_or(LINE_BYTES));
        for (at, byte) in copied.bytes.iter().enumerate().rev() {
            if *byte == b'\n' {
                left -= 1;
            }
            if left == 0 {
                return copied.offset + at as u64 + 1;
            }
        }
        until = from;
    }
    log.start()
}

/// The offset of the first line that ends at a time or later.
fn start_since(log: &Reader, since_ms: u64) -> u64 {
    let marks = log.times(log.start(), u64::MAX);
    let first = marks.iter().find(|mark| mark.wall_ms >= since_ms);
    let first = first.map_or_else(|| log.end(), |mark| mark.offset);
    // The line that contains it.
    let from = first.saturating_sub(LINE_BYTES as u64).max(log.start());
    let before = log.copy(from, usize::try_from(first.saturating_sub(from)).unwrap_or(0));
    let line_end = before.bytes.iter().rposition(|byte| *byte == b'\n');
    line_end.map_or(from, |at| before.offset + at as u64 + 1)
}
