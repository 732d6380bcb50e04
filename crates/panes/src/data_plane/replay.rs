//! The output of a run, replayed into a screen: from the newest key frame on, with the sizes that the terminal had. What
//! was above the screen follows, the newest first.

use patterm_keeper::log::{self, KeyFrame, SizeMark};
use patterm_screen::{History, Screen, Size, TerminalName};

use super::history::FIRST_STAMP;
use crate::offset::Offset;
use crate::process::RunNumber;
use crate::size;

/// The output from which a screen is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The run. The key frames of others do not count.
    pub(crate) run: RunNumber,
    /// The size of the terminal at the end.
    pub(crate) size: Size,
    /// Where the output begins.
    pub(crate) from: Offset,
    /// Where it ends; the parser continues there.
    pub(crate) until: Offset,
    /// The versions of the screen are larger than this.
    pub(crate) version_base: u64,
    /// What the terminal calls itself.
    pub(crate) terminal_name: TerminalName,
}

/// A place between two changes of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayPoint {
    /// The output before this offset is on the screen.
    pub(super) offset: Offset,
    /// So many of the resizes at this offset were before it.
    resizes: usize,
}

/// A screen that was replayed.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) screen: Screen,
    /// The key frame from which it was replayed; `None` if that was the beginning.
    pub(super) base: Option<ReplayPoint>,
}

impl Replay {
    /// Whether there is no output: the screen is blank.
    pub(crate) fn is_empty(&self) -> bool {
        self.from >= self.until
    }

    /// The screen before any output.
    pub(crate) fn blank_screen(&self) -> Screen {
        let mut screen = Screen::new(self.size);
        screen.set_terminal_name(self.terminal_name.clone());
        screen.skip_to(self.until.get());
        screen.raise_version(self.version_base);
        screen
    }

    /// The screen after the output. Its history may be incomplete.
    pub(super) fn screen(&self, log: &log::Reader) -> Replayed {
        let mut replayed = self.newest(log, self.until.get(), None, FIRST_STAMP);
        let screen = &mut replayed.screen;
        screen.set_terminal_name(self.terminal_name.clone());
        screen.skip_to(self.until.get());
        screen.raise_version(self.version_base);
        replayed
    }

    /// The screen as it was when exactly the output before an offset was on it; `None` if output that it needs is gone.
    pub(super) fn at(&self, log: &log::Reader, offset: Offset) -> Option<Screen> {
        let end = ReplayPoint { offset, resizes: usize::MAX };
        let replayed = self.newest(log, offset.get(), Some(end), FIRST_STAMP);
        let is_whole = replayed.base.is_some() || self.from.get() >= log.start();
        is_whole.then_some(replayed.screen)
    }

    /// A blank screen at the oldest byte that is kept, which continues in the middle of the output.
    pub(super) fn without_beginning(&self, log: &log::Reader, offset: Offset) -> Screen {
        let end = ReplayPoint { offset, resizes: usize::MAX };
        let from = ReplayPoint { offset: self.from.max(Offset::new(log.start())), resizes: 0 };
        let later = log.sizes(from.offset.get(), self.until.get());
        let size = later.first().map_or(self.size, |first| size::for_screen(first.before));
        let mut screen = Screen::new(size);
        screen.set_offset(from.offset.get());
        let resizes = self.resizes(log, size, from, Some(end));
        self.replay(log, screen, &resizes, Some(end)).unwrap_or_else(|| self.blank_screen())
    }

    /// Where the oldest key frame of this run is.
    pub(super) fn oldest_key_frame(&self, log: &log::Reader) -> Option<Offset> {
        let (mut oldest, mut newest) = (None, self.until.get());
        while let Some((_, place)) = self.key_frame(log, newest) {
            oldest = Some(place.offset);
            newest = place.offset.get().checked_sub(1)?;
        }
        oldest
    }

    /// Rows above those of a screen that was replayed from a key frame at `end`, with a stamp, and where they begin;
    /// `None` if nothing is above them.
    pub(super) fn older(
        &self,
        log: &log::Reader,
        end: ReplayPoint,
        stamp: u64,
    ) -> (History, Option<ReplayPoint>) {
        let before = end.offset.get().saturating_sub(1);
        let mut replayed = self.newest(log, before, Some(end), stamp);
        // Nothing is shown of what is before the beginning.
        if replayed.base.is_none_or(|base| base.offset <= self.from) {
            replayed.screen.history_mut().give_up_older();
            replayed.base = None;
        }
        (replayed.screen.into_history(), replayed.base)
    }

    /// The screen at `end`, by default at the end of all output, from the newest key frame at or before `newest` that is
    /// enough for it.
    fn newest(
        &self,
        log: &log::Reader,
        mut newest: u64,
        end: Option<ReplayPoint>,
        stamp: u64,
    ) -> Replayed {
        while let Some((mut screen, base)) = self.key_frame(log, newest) {
            screen.history_mut().set_stamp(stamp);
            let resizes = self.resizes(log, screen.size(), base, end);
            if let Some(screen) = self.replay(log, screen, &resizes, end) {
                return Replayed { screen, base: Some(base) };
            }
            // A resize needs rows that were already above the screen of this frame.
            newest = base.offset.get().saturating_sub(1);
        }
        let start = ReplayPoint { offset: self.from, resizes: 0 };
        let resizes = self.resizes(log, self.size, start, end);
        let all = log.sizes(self.from.get(), self.until.get());
        let size = all.first().map_or(self.size, |first| size::for_screen(first.before));
        let mut screen = Screen::new(size);
        screen.history_mut().set_stamp(stamp);
        screen.set_offset(self.from.get().max(log.start()));
        let screen = self.replay(log, screen, &resizes, end);
        // A history that begins at the beginning is complete.
        Replayed { screen: screen.unwrap_or_else(|| self.blank_screen()), base: None }
    }

    /// The newest key frame of this run at or before an offset.
    fn key_frame(&self, log: &log::Reader, mut newest: u64) -> Option<(Screen, ReplayPoint)> {
        loop {
            let frame = log.key_frame(newest)?;
            if let Some((head, screen)) = Head::split(&frame.bytes) {
                if head.run != self.run.get() {
                    // Those before it are of earlier runs.
                    return None;
                }
                let place =
                    ReplayPoint { offset: Offset::new(frame.offset), resizes: head.resizes };
                let screen = Screen::from_frame(screen);
                if let Some(screen) = screen.filter(|screen| screen.offset() == frame.offset) {
                    return Some((screen, place));
                }
            }
            // Damaged, or of another version.
            newest = frame.offset.checked_sub(1)?;
        }
    }

    /// The resizes from a place on.
    fn resizes(
        &self,
        log: &log::Reader,
        size: Size,
        start: ReplayPoint,
        end: Option<ReplayPoint>,
    ) -> Vec<SizeMark> {
        let last = end.map_or(self.until, |end| end.offset);
        let mut marks = log.sizes(start.offset.get(), last.get());
        if let Some(end) = end {
            let before = marks.partition_point(|mark| mark.offset < end.offset.get());
            marks.truncate(before.saturating_add(end.resizes));
        }
        marks.drain(..start.resizes.min(marks.len()));
        if end.is_none() {
            self.end_with_size(&mut marks, size, start);
        }
        marks
    }

    /// The size at the end is known. If it is not that of the last resize, an older patterm, which does not record
    /// them, has resized the terminal later; or this one was killed before it did.
    fn end_with_size(&self, marks: &mut Vec<SizeMark>, size: Size, start: ReplayPoint) {
        let (before, after) = (size::for_terminal(size), size::for_terminal(self.size));
        match marks.last().copied() {
            None if before != after => {
                marks.push(SizeMark { offset: start.offset.get(), before, after });
            }
            Some(last) if last.after != after => {
                if last.before == after && last.offset == self.until.get() {
                    marks.pop();
                } else {
                    marks.push(SizeMark { before: last.after, after, ..last });
                }
            }
            _ => {}
        }
    }

    /// Continues a screen up to `end`; `None` if a resize would give another screen than with a complete history.
    fn replay(
        &self,
        log: &log::Reader,
        mut screen: Screen,
        resizes: &[SizeMark],
        end: Option<ReplayPoint>,
    ) -> Option<Screen> {
        // Replies, notifications and clipboard writes must not happen again.
        screen.set_replay(true);
        let from = screen.offset();
        for mark in resizes {
            feed(log, &mut screen, mark.offset);
            let after = size::for_screen(mark.after);
            if !screen.has_history_for(after) {
                return None;
            }
            screen.resize(after);
        }
        let end = end.map_or(self.until, |end| end.offset).get();
        feed(log, &mut screen, end);
        log.release(from, end);
        drop((screen.take_replies(), screen.take_notices()));
        screen.set_replay(false);
        Some(screen)
    }
}

/// Feeds the output up to an offset; returns how many bytes there were.
pub(super) fn feed(log: &log::Reader, screen: &mut Screen, end: u64) -> u64 {
    let (from, mut fed) = (screen.offset(), 0);
    let bytes = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
    log.visit(from, bytes, |at, bytes| {
        // Some output may have been dropped, so that the last part goes beyond the end.
        let room = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        if room > 0 {
            screen.skip_to(at);
            let bytes = &bytes[..bytes.len().min(room)];
            screen.feed(bytes);
            fed += bytes.len() as u64;
        }
        room > bytes.len()
    });
    screen.skip_to(end);
    fed
}

/// What is before the screen in a key frame.
#[derive(Debug)]
struct Head {
    /// The number of the run.
    run: u64,
    /// How many resizes at its offset were before it.
    resizes: usize,
}

impl Head {
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (run, rest) = bytes.split_first_chunk::<8>()?;
        let (resizes, rest) = rest.split_first_chunk::<2>()?;
        let resizes = usize::from(u16::from_le_bytes(*resizes));
        Some((Self { run: u64::from_le_bytes(*run), resizes }, rest))
    }
}

/// The key frame of a screen; `None` in the middle of a sequence, and for a huge screen.
pub(super) fn key_frame(screen: &Screen, run: RunNumber, log: &log::Reader) -> Option<KeyFrame> {
    let offset = screen.offset();
    let resizes = u16::try_from(log.sizes(offset, offset).len()).ok()?;
    let head = [&run.get().to_le_bytes()[..], &resizes.to_le_bytes()].concat();
    Some(KeyFrame { offset, bytes: [head, screen.frame()?].concat() })
}
