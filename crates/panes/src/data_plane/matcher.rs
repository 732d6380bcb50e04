//! The thread that searches the output for patterns that callers wait for, and for addresses. It reads the log
//! behind the parser at its own pace, so that a thousand waiters do not slow a flood down; and it misses nothing,
//! since the log still has output that has scrolled off the screen.

use std::sync::Arc;

use patterm_screen::Screen;
use regex::Regex;
use tokio::sync::oneshot;

use super::run::ProcessRun;
use super::turns::Turns;
use super::waiters::{LineSource, MatchOutcome};
use crate::offset::Offset;
use crate::ports;

/// Bytes of one run that are searched before the next run has its turn.
const TURN_BYTES: usize = 256 << 10;

/// A caller's wait for a pattern; it ends when this is dropped.
#[derive(Debug)]
pub struct Waiting {
    run: Arc<ProcessRun>,
    number: u64,
    /// Resolves when the pattern matched or can no longer match.
    pub found: oneshot::Receiver<MatchOutcome>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.run.matcher.waiters().remove(self.number);
    }
}

#[derive(Debug)]
pub(super) struct Matcher {
    turns: Turns,
}

impl Default for Matcher {
    fn default() -> Self {
        Self { turns: Turns::new(|run| &run.matcher.queued) }
    }
}

impl Matcher {
    /// Waits for a pattern in the output from `from` on, and on the screen.
    pub(super) fn wait(&self, run: &Arc<ProcessRun>, pattern: Regex, from: Offset) -> Waiting {
        let (number, found) = run.matcher.waiters().add(&run.log, pattern, from);
        self.push(run);
        Waiting { run: run.clone(), number, found }
    }

    /// Queues a run if somebody waits for a pattern or its output is to be searched for addresses.
    pub(super) fn push(&self, run: &Arc<ProcessRun>) {
        if !run.matcher.waiters().is_empty() || wants_ports(run) {
            self.turns.push(run);
        }
    }

    /// The same for the echo of a key: nobody prints an address letter by letter. It is searched with what follows.
    pub(super) fn push_echo(&self, run: &Arc<ProcessRun>) {
        if !run.matcher.waiters().is_empty() {
            self.turns.push(run);
        }
    }

    /// The addresses found so far. This thread searches the rest of the output, and everything printed from now on;
    /// the caller's thread never does.
    pub(super) fn ports(&self, run: &Arc<ProcessRun>) -> Vec<ports::PrintedAddress> {
        run.ports.ask();
        self.push(run);
        run.ports.seen()
    }

    pub(super) fn run(&self) {
        loop {
            self.step(&self.turns.next());
        }
    }

    /// One turn of one run; it gets another one if there is more to search.
    fn step(&self, run: &Arc<ProcessRun>) {
        let mut more = turn(run);
        if wants_ports(run) {
            more |= !run.ports.look(&run.log, run.parser.parsed());
        }
        if more {
            self.push(run);
        }
    }
}

/// Whether some parsed output is still to be searched for addresses.
fn wants_ports(run: &ProcessRun) -> bool {
    run.ports.wants(run.parser.parsed())
}

/// The lines that are on the screen now, with wrapped rows joined.
pub fn visible_lines(screen: &Screen) -> Vec<String> {
    let mut lines = vec![String::new()];
    for row in 0..screen.size().rows {
        if let Some(line) = lines.last_mut() {
            line.push_str(&screen.row(row));
        }
        if !screen.wraps(row) {
            lines.push(String::new());
        }
    }
    lines
}

/// Searches the screen and the next part of the output of one run; `true` if there is more.
fn turn(run: &Arc<ProcessRun>) -> bool {
    if run.matcher.waiters().is_empty() || !run.is_rebuilt() {
        return false;
    }
    let progress = *run.watch().borrow();
    // The screen is copied first, so that the waiters are never locked while waiting for it. A caller that begins
    // to wait in between has looked at a newer screen itself.
    let newest = run.matcher.waiters().newest();
    let shown = visible_lines(&run.screen());
    let mut waiters = run.matcher.waiters();
    for line in &shown {
        if waiters.is_empty() {
            return false;
        }
        if !line.is_empty() {
            waiters.search_line(line, LineSource::Screen { newest });
        }
    }
    let more = waiters.search_output(&run.log, progress.parsed, TURN_BYTES);
    if progress.is_over() && !more {
        waiters.end();
    }
    more
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::Size;

    use super::*;
    use crate::process::{ProcessId, RunNumber};

    /// A run, and a way to print into its log.
    struct Printed {
        dir: tempfile::TempDir,
        log: Log,
        run: Arc<ProcessRun>,
    }

    impl Printed {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let log = Log::open(&dir.path().join("log"), 64 << 20).unwrap();
            let screen = Screen::new(Size::DEFAULT);
            let (id, reader) = (ProcessId::new(1), log.reader());
            let run = ProcessRun::new(id, RunNumber::FIRST, None, reader, screen, Offset::START);
            Self { dir, log, run: Arc::new(run) }
        }

        /// Prints a text as the reader and the parser do.
        fn print(&mut self, text: &str, matcher: &Matcher) {
            let source = self.dir.path().join("source");
            std::fs::write(&source, text).unwrap();
            let file = std::fs::File::open(&source).unwrap();
            loop {
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                if self.log.read_from(&file, 16 << 10).unwrap() == 0 {
                    break;
                }
            }
            self.run.parser.set_parsed(Offset::new(self.run.log.end()));
            matcher.push(&self.run);
        }
    }

    /// Does the work of the thread until nothing is queued.
    fn run_to_rest(matcher: &Matcher) {
        while let Some(run) = matcher.turns.try_next() {
            matcher.step(&run);
        }
    }

    fn ports(matcher: &Matcher, run: &Arc<ProcessRun>) -> Vec<u16> {
        matcher.ports(run).into_iter().map(|seen| seen.port).collect()
    }

    #[test]
    fn asking_for_addresses_searches_nothing_and_later_output_is_searched_without_being_asked() {
        let matcher = Matcher::default();
        let mut printed = Printed::new();
        let filler = "12:30\n".repeat(200_000);
        printed.print(&format!("{filler}up at http://localhost:5173/\n"), &matcher);
        run_to_rest(&matcher);
        let run = printed.run.clone();
        assert_eq!(ports(&matcher, &run), [0; 0], "too far from the beginning, and nobody asked");
        assert_eq!(ports(&matcher, &run), [0; 0], "the caller's thread does not search");
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &run), [5173]);
        printed.print("and at http://localhost:5174/\n", &matcher);
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &run), [5173, 5174]);
    }

    #[test]
    fn addresses_of_an_earlier_run_do_not_count() {
        let matcher = Matcher::default();
        let mut printed = Printed::new();
        let filler = "12:30\n".repeat(200_000);
        printed.print(&format!("{filler}up at http://0.0.0.0:5173/\n"), &matcher);
        run_to_rest(&matcher);
        let (id, begin) = (ProcessId::new(1), Offset::new(printed.log.end()));
        let (log, screen) = (printed.log.reader(), Screen::new(Size::DEFAULT));
        let mut run = ProcessRun::new(id, RunNumber::new(2), None, log, screen, begin);
        run.ports = ports::Ports::since(begin);
        printed.run = Arc::new(run);
        printed.print("up at http://127.0.0.1:5173/\n", &matcher);
        run_to_rest(&matcher);
        let seen = printed.run.ports.seen();
        assert_eq!(seen.len(), 1, "without being asked");
        assert_eq!((seen[0].url.as_str(), seen[0].offset), ("http://127.0.0.1:5173/", begin));
    }

    #[test]
    fn the_first_output_is_searched_without_a_request() {
        let matcher = Matcher::default();
        let mut printed = Printed::new();
        printed.print("up at http://localhost:5173/\n", &matcher);
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &printed.run), [5173]);
    }
}
