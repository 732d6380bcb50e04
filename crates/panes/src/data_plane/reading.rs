//! The reader's own state of a pane, and how it finds room for new output.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use patterm_keeper::Pane;
use patterm_keeper::log::{Log, Reuse};

use super::Event;
use super::ending::RunEnd;
use super::parser::OutputParser;
use super::run::ProcessRun;
use super::trouble::Trouble;
use crate::offset::Offset;

/// How far the mark in the process table is ahead of the output. A log that lost its end continues at the mark.
/// Each new mark writes the table to the disk, so a flood must not need one every second; whatever a program
/// prints, an offset stays far below 2^53.
pub(crate) const MARK_BYTES: u64 = 8 << 30;

/// How soon a new file is tried again after there was no room for one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The state of a pane that only the reader's thread uses.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) run: Arc<ProcessRun>,
    pub(super) pane: Arc<Pane>,
    pub(super) log: Log,
    /// The terminal is closed.
    pub(super) closed: bool,
    /// It is not read for a moment, and is not in epoll.
    pub(super) stalled: bool,
    /// Its output cannot be stored normally.
    pub(super) troubled: bool,
    /// No new file is tried before this.
    retry_at: Option<Instant>,
    /// The end of the program was noticed.
    pub(super) ended: bool,
    /// How it ended, until all its output is read.
    pub(super) end: Option<RunEnd>,
    /// Input waits until the terminal accepts more.
    pub(super) writing: bool,
    /// Bytes that are still parsed by the reader, because they may be the echo of a key.
    pub(super) echo_bytes: u64,
}

/// Whether there is room for the next output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// The log stores it.
    Kept,
    /// There is no file and no room for one: the output is counted and dropped.
    Lost,
    /// The log will store it soon: the file that it will replace is still being read.
    Soon,
}

impl Reading {
    pub(super) fn new(run: Arc<ProcessRun>, pane: Arc<Pane>, log: Log) -> Self {
        Self {
            run,
            pane,
            log,
            closed: false,
            stalled: false,
            troubled: false,
            retry_at: None,
            ended: false,
            end: None,
            writing: false,
            echo_bytes: 0,
        }
    }

    /// Whether the pane is not read until the parser has caught up.
    pub(super) fn is_paused(&self) -> bool {
        self.run.reader.is_paused()
    }

    /// Finds room for new output: in a new file or, if there can be none, in the oldest file of the same log. So a
    /// pane on a full disk keeps working, and nothing is shown that was not in the log.
    pub(super) fn make_room(&mut self, now: Instant, parser: &OutputParser) -> Room {
        if self.retry_at.is_none_or(|at| at <= now) && self.begin_file(now, parser).is_ok() {
            return Room::Kept;
        }
        loop {
            match self.log.reuse_oldest(self.run.needed().get()) {
                Ok(Reuse::Done) if self.log.has_room() => return Room::Kept,
                Ok(Reuse::Busy) => return Room::Soon,
                Ok(Reuse::None) => return Room::Lost,
                // The oldest file was damaged or removed, which may have freed some space.
                Ok(Reuse::Done) | Err(_) => {
                    if self.begin_file(now, parser).is_ok() {
                        return Room::Kept;
                    }
                }
            }
        }
    }

    /// Asks for a later mark in the process table when the output comes near the current one.
    pub(super) fn advance_mark(&self, parser: &OutputParser) {
        let end = Offset::new(self.log.end());
        if end.plus(MARK_BYTES / 2) > self.run.reader.mark() {
            let (id, run, offset) = (self.run.id.clone(), self.run.number, end.plus(MARK_BYTES));
            if parser.try_report(Event::Mark { id, run, offset }) {
                self.run.reader.set_mark(offset);
            }
        }
    }

    /// Checks whether there is room again. `full` means that the disk was just found full; the result is the same
    /// for the next pane.
    pub(super) fn look_for_room(
        &mut self,
        now: Instant,
        full: bool,
        parser: &OutputParser,
    ) -> bool {
        if full || self.retry_at.is_some_and(|at| at > now) {
            return full;
        }
        // A closed terminal needs no file, and the next run may be writing already.
        let found = match self.closed || self.log.has_room() {
            true => {
                let found = self.log.check_room();
                self.note(now, &found, parser);
                found
            }
            false => self.begin_file(now, parser),
        };
        found.is_err_and(|error| Trouble::of(&error) == Trouble::DiskFull)
    }

    fn begin_file(&mut self, now: Instant, parser: &OutputParser) -> io::Result<()> {
        let begun = self.log.make_room();
        self.note(now, &begun, parser);
        begun
    }

    fn note(&mut self, now: Instant, found: &io::Result<()>, parser: &OutputParser) {
        let trouble = found.as_ref().err().map(Trouble::of);
        self.troubled = trouble.is_some();
        self.retry_at = trouble.is_some().then(|| now + RETRY_AFTER);
        if self.run.reader.set_trouble(trouble.clone()) {
            match trouble {
                Some(trouble) => {
                    tracing::error!(id = %self.run.id, %trouble, "cannot store new output normally")
                }
                None => tracing::info!(id = %self.run.id, "new output is stored normally again"),
            }
            // If the channel is full, the control plane is about to look at everything anyway.
            parser.try_report(Event::Trouble);
        }
    }
}
