//! A pane as the reading thread knows it, and where room for its output comes from.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use patterm_keeper::Pane;
use patterm_keeper::log::{Log, Reuse};

use super::Event;
use super::parser::OutputParser;
use super::run::{MARK_BYTES, ProcessRun};
use super::trouble::Trouble;
use crate::process::Exit;

/// How soon a new file is tried again where there was no room for one.
const AGAIN: Duration = Duration::from_secs(1);

/// A pane as this thread knows it.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) run: Arc<ProcessRun>,
    pub(super) pane: Arc<Pane>,
    pub(super) log: Log,
    /// The terminal is closed.
    pub(super) over: bool,
    /// It is not read for a moment.
    pub(super) stalled: bool,
    /// Its output cannot be kept as it should be.
    pub(super) troubled: bool,
    /// When a new file is tried again.
    again: Option<Instant>,
    /// The end of the program was seen.
    pub(super) ended: bool,
    /// How it ended, until all it printed is read.
    pub(super) exit: Option<Option<Exit>>,
    pub(super) writing: bool,
}

/// Where what is read next goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Into the log.
    Kept,
    /// Nowhere: there is no file and no room for one. It is counted.
    Lost,
    /// Into the log, in a moment: somebody looks at the file that it will go to.
    Soon,
}

impl Reading {
    pub(super) fn new(run: Arc<ProcessRun>, pane: Arc<Pane>, log: Log) -> Self {
        Self {
            run,
            pane,
            log,
            over: false,
            stalled: false,
            troubled: false,
            again: None,
            ended: false,
            exit: None,
            writing: false,
        }
    }

    /// Whether the parser must come after first.
    pub(super) fn is_held(&self) -> bool {
        self.run.held.load(Ordering::Acquire)
    }

    /// Finds room for what is read next: a new file, or where that cannot be had the oldest of its
    /// own. So a pane on a full disk goes on, and nothing is shown that was not in the log.
    pub(super) fn make_room(&mut self, now: Instant, parser: &OutputParser) -> Room {
        if self.again.is_none_or(|again| again <= now) && self.begin_file(now, parser).is_ok() {
            return Room::Kept;
        }
        loop {
            match self.log.reuse_oldest(self.run.needed()) {
                Ok(Reuse::Done) if self.log.has_room() => return Room::Kept,
                Ok(Reuse::Busy) => return Room::Soon,
                Ok(Reuse::None) => return Room::Lost,
                // It was damaged or removed: the next one, or the room that this one took.
                Ok(Reuse::Done) | Err(_) => {
                    if self.begin_file(now, parser).is_ok() {
                        return Room::Kept;
                    }
                }
            }
        }
    }

    /// Has a later offset noted where the one that is noted comes near.
    pub(super) fn keep_mark(&self, parser: &OutputParser) {
        let (end, mark) = (self.log.end(), self.run.mark.load(Ordering::Relaxed));
        if end + MARK_BYTES / 2 > mark {
            let (id, run, offset) = (self.run.id.clone(), self.run.number, end + MARK_BYTES);
            if parser.tell(Event::Mark { id, run, offset }) {
                self.run.mark.store(offset, Ordering::Relaxed);
            }
        }
    }

    /// Sees whether there is room again; `full` if the disk was found full just now.
    pub(super) fn look_for_room(
        &mut self,
        now: Instant,
        full: bool,
        parser: &OutputParser,
    ) -> bool {
        if full || self.again.is_some_and(|again| again > now) {
            return full;
        }
        // A run that is over needs no file, and the next one may be writing already.
        let found = match self.over || self.log.has_room() {
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
        self.again = trouble.is_some().then(|| now + AGAIN);
        if self.run.set_trouble(trouble.clone()) {
            match trouble {
                Some(trouble) => tracing::error!(id = %self.run.id, %trouble, "output is lost"),
                None => tracing::info!(id = %self.run.id, "output is kept again"),
            }
            // With a thousand events on their way, whoever follows looks again anyway.
            parser.tell(Event::Trouble);
        }
    }
}
