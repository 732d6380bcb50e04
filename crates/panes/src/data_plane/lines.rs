//! The lines of a run: its history and its screen, read in slices so that the screen is never locked for long.

use std::collections::VecDeque;

use patterm_screen::Line;

use super::run::ProcessRun;

/// Lines, and bytes of them, that are copied while the screen is locked: everything else that needs the screen,
/// including the thread that answers requests, waits for about a millisecond.
const LINES_AT_ONCE: usize = 4096;
const LINE_BYTES_AT_ONCE: usize = 1 << 20;

impl ProcessRun {
    /// Passes every line from number `from` on, first of the history and then of the screen, to `take`, until it
    /// returns `false`. A very long line comes in several parts with the same number. The screen is locked for one
    /// slice at a time, and never while `take` runs.
    pub fn visit_lines(&self, from: u64, mut take: impl FnMut(Line<'static>) -> bool) {
        self.wait_for_line(from);
        let mut next = Some(from);
        while let Some(from) = next {
            let (slice, rest) = self.slice_of_lines(from);
            next = rest;
            if !slice.into_iter().all(&mut take) {
                return;
            }
        }
    }

    /// Blocks until the lines from a number on are there, after a start of the server.
    fn wait_for_line(&self, from: u64) {
        // The first one that is there may have begun before.
        if !self.is_complete() && self.screen().history().first_line() >= from {
            self.wait_until_complete();
        }
    }

    /// Some lines from a number on, and the number of the next line if there may be more.
    fn slice_of_lines(&self, from: u64) -> (Vec<Line<'static>>, Option<u64>) {
        let (mut slice, mut bytes) = (Vec::<Line<'static>>::new(), 0);
        for line in self.screen().lines(from) {
            let is_full = slice.len() >= LINES_AT_ONCE || bytes >= LINE_BYTES_AT_ONCE;
            // A very long line comes in several parts with the same number, which stay together.
            let is_continued = slice.last().is_some_and(|last| last.number == line.number);
            if is_full && !is_continued {
                return (slice, Some(line.number));
            }
            bytes += line.text.len();
            let text = line.text.into_owned().into();
            slice.push(Line { number: line.number, offset: line.offset, text });
        }
        (slice, None)
    }

    /// The last `lines` lines, oldest first; fewer if there are not as many.
    pub fn last_lines(&self, lines: usize) -> VecDeque<String> {
        let mut numbers = lines as u64;
        loop {
            let (from, is_all) = self.last_numbers(numbers);
            let mut last = VecDeque::new();
            self.visit_lines(from, |line| {
                last.push_back(line.text.into_owned());
                if last.len() > lines {
                    last.pop_front();
                }
                true
            });
            if is_all || last.len() >= lines {
                return last;
            }
            // A resize skips numbers, so there were fewer lines than numbers.
            numbers = numbers.saturating_mul(2);
        }
    }

    /// The first of the last `numbers` line numbers, and whether there are no lines before it.
    fn last_numbers(&self, numbers: u64) -> (u64, bool) {
        let mut screen = self.screen();
        let known = screen.history().next_line() - screen.history().first_line();
        if !self.is_complete() && known <= numbers {
            drop(screen);
            self.wait_until_complete();
            screen = self.screen();
        }
        let first = screen.history().first_line();
        let last = screen.lines(screen.history().next_line().saturating_sub(1)).last();
        let from = last.map_or(0, |last| (last.number + 1).saturating_sub(numbers));
        (from.max(first), from <= first)
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::{Screen, Size};

    use super::*;
    use crate::offset::Offset;
    use crate::process::{ProcessId, RunNumber};

    /// A run whose screen shows this text.
    fn run_of(text: &str) -> (tempfile::TempDir, ProcessRun) {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), 1 << 20).unwrap();
        let mut screen = Screen::new(Size::DEFAULT);
        screen.feed(text.as_bytes());
        let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
        let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
        (dir, run)
    }

    #[test]
    fn lines_in_slices_are_the_same_as_all_at_once() {
        let lines: String = (0..3 * LINES_AT_ONCE).map(|n| format!("line {n}\r\n")).collect();
        // Longer than any line that is stored in one part.
        let long = "0123456789".repeat(40_000);
        let many_long = format!("{}\r\n", "x".repeat(5_000)).repeat(500);
        for text in [lines, format!("a\r\n{long}\r\nb\r\n"), many_long, String::new()] {
            let (_dir, run) = run_of(&text);
            let mut visited = Vec::new();
            run.visit_lines(0, |line| {
                visited.push(line);
                true
            });
            let screen = run.screen();
            assert!(visited.iter().eq(screen.lines(0).collect::<Vec<_>>().iter()));
            let all: Vec<_> = visited.into_iter().map(|line| line.text.into_owned()).collect();
            drop(screen);
            for wanted in [0, 1, 7, LINES_AT_ONCE + 1, usize::MAX] {
                let last = all.len().saturating_sub(wanted);
                assert!(run.last_lines(wanted).iter().eq(&all[last..]), "the last {wanted}");
            }
        }
    }

    #[test]
    fn the_screen_is_free_while_lines_are_taken() {
        let (_dir, run) = run_of("one\r\ntwo\r\n");
        let mut free = Vec::new();
        run.visit_lines(0, |_| {
            free.push(run.is_screen_free());
            free.len() < 2
        });
        assert_eq!(free, [true, true]);
    }
}
