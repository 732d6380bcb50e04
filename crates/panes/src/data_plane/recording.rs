//! A run as it was recorded: its screen at one moment after the other, with the times and the sizes that it had.

use std::collections::VecDeque;

use patterm_keeper::log::{Reader, SizeMark, TimeMark, time_at};
use patterm_screen::{NumberedRow, Screen};

use super::replay::{Replay, feed};
use super::run::ProcessRun;
use crate::offset::Offset;
use crate::size;

/// The minimum time between two moments. Output that was printed in between is shown at once.
const STEP_MS: u64 = 50;

/// The maximum output between two moments, whose times are unknown or the same.
const STEP_BYTES: u64 = 256 << 10;

/// Rows above the screen that are kept, so that a resize can show them again.
const HISTORY_BYTES: usize = 1 << 20;

/// A run that is shown again, from one offset to another.
#[derive(Debug)]
pub struct Recording {
    replay: Replay,
    log: Reader,
    screen: Screen,
    resizes: VecDeque<SizeMark>,
    times: Vec<TimeMark>,
    end: u64,
    time_ms: Option<u64>,
    lost: u64,
}

impl ProcessRun {
    /// The first moment of this run of which the screen is known; the run began at `begin`. That of a later one may not
    /// be, if its output is partly gone and there is no key frame before it.
    pub fn first_moment(&self, begin: Offset) -> Offset {
        if self.log.start() <= begin.get() {
            return begin;
        }
        let frame = self.replay_from(begin).oldest_key_frame(&self.log);
        frame.unwrap_or(Offset::new(self.log.start()))
    }

    /// This run, which began at `begin`, from one offset to another; `None` if the output that the first screen needs is
    /// gone. This parses about a megabyte, so it is not for a thread that answers requests.
    pub fn recording(&self, begin: Offset, from: Offset, to: Offset) -> Option<Recording> {
        let replay = self.replay_from(begin);
        let screen = match replay.at(&self.log, from) {
            Some(screen) => screen,
            // Nothing is known of what is before the oldest byte.
            None if from == self.first_moment(begin) => replay.without_beginning(&self.log, from),
            None => return None,
        };
        let after = from.get().saturating_add(1);
        let times = self.log.times(from.get().saturating_sub(1).max(begin.get()), to.get());
        Some(Recording {
            time_ms: time_at(&times, from.get().saturating_sub(1)),
            resizes: self.log.sizes(after, to.get()).into(),
            log: self.log.clone(),
            end: to.get(),
            lost: 0,
            replay,
            screen,
            times,
        })
    }
}

impl Recording {
    /// The screen at this moment.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The same, to take rows from above it.
    pub fn screen_mut(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// The output before this offset is on the screen.
    pub fn offset(&self) -> u64 {
        self.screen.offset()
    }

    /// When the last output before this moment was printed, in milliseconds since 1970; before the first output, when
    /// that was; `None` if it is unknown.
    pub fn time_ms(&self) -> Option<u64> {
        self.time_ms.or_else(|| Some(self.times.first()?.wall_ms))
    }

    /// Bytes of output since the beginning that are lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Goes on to the next moment; `false` at the end.
    pub fn advance(&mut self) -> bool {
        let from = self.offset();
        let resize = self.resizes.front().copied();
        if from >= self.end && resize.is_none() {
            return false;
        }
        let to = self.next_offset(from).min(resize.map_or(self.end, |mark| mark.offset));
        self.screen.set_replay(true);
        let fed = feed(&self.log, &mut self.screen, to);
        self.log.release(from, to);
        self.lost += to.saturating_sub(from).saturating_sub(fed);
        if to > from {
            self.time_ms = time_at(&self.times, to - 1);
        }
        if let Some(mark) = resize.filter(|mark| mark.offset == to) {
            self.resizes.pop_front();
            self.resize(mark);
        }
        drop((self.screen.take_replies(), self.screen.take_notices()));
        self.screen.set_replay(false);
        true
    }

    /// Drops rows above the screen that nobody wants.
    pub fn drop_history(&mut self) {
        let history = self.screen.history_mut();
        let bytes = history.bytes();
        if bytes > HISTORY_BYTES {
            history.drop_oldest(bytes - HISTORY_BYTES);
        }
    }

    /// Rows above the screen that no resize will show again, the oldest first.
    pub fn take_history(&mut self) -> Vec<NumberedRow> {
        self.screen.take_scrolled(HISTORY_BYTES)
    }

    /// Where the next moment is, apart from resizes.
    fn next_offset(&self, from: u64) -> u64 {
        let most = from.saturating_add(STEP_BYTES).min(self.end);
        let due = time_at(&self.times, from).map_or(0, |time| time.saturating_add(STEP_MS));
        let next = self.times.partition_point(|mark| mark.offset <= from || mark.wall_ms < due);
        self.times.get(next).map_or(most, |mark| mark.offset.min(most))
    }

    fn resize(&mut self, mark: SizeMark) {
        let after = size::for_screen(mark.after);
        if self.screen.has_history_for(after) {
            self.screen.resize(after);
            return;
        }
        // The screen needs rows from above that are not in the key frame from which it was replayed.
        match self.replay.at(&self.log, Offset::new(mark.offset)) {
            Some(screen) => {
                self.screen = screen;
                self.screen.set_replay(true);
                // It is after all of them.
                self.resizes.retain(|later| later.offset > mark.offset);
            }
            None => self.screen.resize(after),
        }
    }
}
