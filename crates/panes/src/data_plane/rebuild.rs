//! Rebuilds the screens of runs that an earlier server left, from their logs, on threads of their own. The server
//! answers requests meanwhile; a request that needs a screen waits for that screen, which is rebuilt next. First come
//! all screens, then what is above them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use patterm_keeper::log;
use patterm_screen::History;

use super::history::FIRST_STAMP;
use super::parser::OutputParser;
use super::replay::{Replay, ReplayPoint, Replayed};
use super::run::ProcessRun;
use crate::offset::Offset;
use patterm_store::sync::lock;

/// How many screens are rebuilt at the same time. They share the processors with everything else that starts.
const THREADS: usize = 2;

/// How far the screen of a run is rebuilt.
#[derive(Debug)]
pub(super) struct Rebuilding {
    /// The screen is there. Set with `Release` after it is in its place, and loaded with `Acquire`.
    has_screen: AtomicBool,
    /// And everything above it, as well.
    is_done: AtomicBool,
    /// Somebody waits for what is above it. Only a hint which run is next, so `Relaxed`.
    is_wanted: AtomicBool,
    /// What is still to be replayed.
    left: Mutex<Left>,
    changed: Condvar,
}

/// What is still to be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// All of it.
    All(Replay),
    /// What was above the screen at this place. So many parts below are there.
    Above(Replay, ReplayPoint, u64),
    Nothing,
}

impl Rebuilding {
    pub(super) fn of(replay: Option<Replay>) -> Self {
        Self {
            has_screen: AtomicBool::new(replay.is_none()),
            is_done: AtomicBool::new(replay.is_none()),
            is_wanted: AtomicBool::new(false),
            left: Mutex::new(replay.map_or(Left::Nothing, Left::All)),
            changed: Condvar::new(),
        }
    }

    /// Whether the screen is there.
    pub(super) fn has_screen(&self) -> bool {
        self.has_screen.load(Ordering::Acquire)
    }

    /// Whether everything above the screen is there as well.
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Somebody waits for what is above the screen.
    pub(super) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Blocks until the screen is there. Tasks wait for it with [`super::DataPlane::rebuilt`] instead.
    pub(super) fn wait(&self) {
        if self.has_screen() {
            return;
        }
        let mut left = lock(&self.left);
        while matches!(*left, Left::All(_)) {
            left = self.changed.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until everything above the screen is there. Tasks use [`super::DataPlane::completed`] instead.
    pub(super) fn wait_for_all(&self) {
        if self.is_done() {
            return;
        }
        self.want();
        let mut left = lock(&self.left);
        while *left != Left::Nothing {
            left = self.changed.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The screen, and the offset that it shows; `None` if it is there.
    pub(super) fn screen(&self, log: &log::Reader) -> Option<(Replayed, Offset)> {
        let Left::All(replay) = lock(&self.left).clone() else { return None };
        // Without its screen, a pane could not be used at all.
        let replayed = catch_unwind(AssertUnwindSafe(|| replay.screen(log)));
        let replayed = replayed.unwrap_or_else(|_| {
            tracing::error!("cannot rebuild a screen from its log; it begins blank");
            Replayed { screen: replay.blank_screen(), base: None }
        });
        Some((replayed, replay.until))
    }

    /// The rows above a place, of which some may still be missing, and that place; `None` if all are there.
    pub(super) fn above(&self, log: &log::Reader) -> Option<(History, Option<ReplayPoint>)> {
        let Left::Above(replay, place, parts) = lock(&self.left).clone() else { return None };
        let stamp = FIRST_STAMP - 1 - parts;
        let above = catch_unwind(AssertUnwindSafe(|| replay.older(log, place, stamp)));
        Some(above.unwrap_or_else(|_| {
            tracing::error!("cannot rebuild the rows above a screen from its log");
            (History::default(), None)
        }))
    }

    /// The screen is in its place, with all rows of the output after `base`.
    pub(super) fn set_base(&self, base: Option<ReplayPoint>) {
        let mut left = lock(&self.left);
        *left = match (std::mem::replace(&mut *left, Left::Nothing), base) {
            (Left::All(replay), Some(base)) => Left::Above(replay, base, 0),
            (Left::Above(replay, _, parts), Some(base)) => Left::Above(replay, base, parts + 1),
            _ => Left::Nothing,
        };
        self.has_screen.store(true, Ordering::Release);
        self.is_done.store(*left == Left::Nothing, Ordering::Release);
        self.changed.notify_all();
    }
}

/// The runs that are still to be rebuilt.
#[derive(Debug, Default)]
pub(super) struct Rebuilds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Runs without their screens.
    queue: VecDeque<Arc<ProcessRun>>,
    /// Runs whose screens are there, without everything above.
    above: VecDeque<Arc<ProcessRun>>,
    threads: usize,
}

impl Rebuilds {
    /// Queues a run. The threads end when nothing is queued.
    pub(super) fn push(self: &Arc<Self>, run: &Arc<ProcessRun>, parser: &Arc<OutputParser>) {
        let mut state = lock(&self.0);
        state.queue.push_back(run.clone());
        if state.threads >= THREADS {
            return;
        }
        let (rebuilds, to_parse) = (self.clone(), parser.clone());
        match super::thread("patterm-rebuild", move || rebuilds.run(&to_parse)) {
            Ok(()) => state.threads += 1,
            // Others go on, if there are any; without one, this thread does the work.
            Err(error) if state.threads == 0 => {
                tracing::error!(%error, "cannot start a thread that rebuilds screens");
                state.threads += 1;
                drop(state);
                self.run(parser);
            }
            Err(_) => {}
        }
    }

    /// Puts a run before all others.
    pub(super) fn put_first(&self, run: &Arc<ProcessRun>) {
        let mut state = lock(&self.0);
        if let Some(at) = state.queue.iter().position(|queued| Arc::ptr_eq(queued, run))
            && let Some(run) = state.queue.remove(at)
        {
            state.queue.push_front(run);
        }
    }

    fn run(&self, parser: &Arc<OutputParser>) {
        while let Some(run) = self.next() {
            if run.rebuild() {
                parser.resized(&run);
            }
            if !run.is_complete() {
                // The newest rows of all runs come first.
                lock(&self.0).above.push_back(run.clone());
            }
            // Output that came meanwhile is parsed now, and the history is counted.
            parser.push(&run);
        }
    }

    fn next(&self) -> Option<Arc<ProcessRun>> {
        let mut state = lock(&self.0);
        // Nobody needs the rows of a process that was closed.
        state.above.retain(|run| Arc::strong_count(run) > 1);
        let run = state.queue.pop_front().or_else(|| {
            let wanted = state.above.iter().position(|run| run.is_wanted());
            state.above.remove(wanted.unwrap_or(0))
        });
        if run.is_none() {
            state.threads -= 1;
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::{Size, TerminalName};

    use super::*;
    use crate::data_plane::DataPlane;
    use crate::process::{ProcessId, RunNumber};
    use patterm_store::clock::Clock;

    /// A log with some output.
    struct Printed {
        dir: tempfile::TempDir,
        log: Log,
    }

    impl Printed {
        fn new(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let log = Log::open(&dir.path().join("log"), 64 << 20).unwrap();
            let mut printed = Self { dir, log };
            printed.print(text);
            printed
        }

        fn print(&mut self, text: &str) {
            let source = self.dir.path().join("source");
            std::fs::write(&source, text).unwrap();
            let file = std::fs::File::open(&source).unwrap();
            loop {
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                if self.log.read_from(&file, 16 << 10).unwrap() == 0 {
                    return;
                }
            }
        }

        /// A run whose screen is to be rebuilt from everything that was printed.
        fn run(&self, number: u64) -> Arc<ProcessRun> {
            let until = Offset::new(self.log.end());
            let (id, first) = (ProcessId::new(number), RunNumber::FIRST);
            let (size, from) = (Size::new(4, 20), Offset::START);
            let terminal_name = TerminalName::try_from("xterm(370)".to_owned()).unwrap();
            let replay = Replay { run: first, size, from, until, version_base: 7, terminal_name };
            Arc::new(ProcessRun::to_rebuild(id, first, None, self.log.reader(), replay))
        }
    }

    #[tokio::test]
    async fn a_screen_shows_what_was_printed_before_and_after_the_start() {
        let (plane, _events) = DataPlane::start(1 << 20, Clock::system()).unwrap();
        let mut printed = Printed::new("one\r\n\x1b[31mtw");
        let run = printed.run(1);
        plane.count(&run);
        // Half of an escape sequence may be on either side.
        printed.print("o\r\nthree\x1b[");
        plane.count(&run);
        assert!(!run.is_rebuilt());
        assert_eq!(run.watch().borrow().parsed, Offset::START);
        plane.rebuild(&run);
        plane.rebuilt(&run).await;
        printed.print("2Dx");
        plane.count(&run);
        let end = Offset::new(printed.log.end());
        run.watch().wait_for(|progress| progress.parsed == end).await.unwrap();
        let mut screen = run.screen();
        let rows: Vec<String> = (0..3).map(|row| screen.row(row).to_string()).collect();
        assert_eq!(rows, ["one", "two", "thrxe"]);
        assert!(screen.version() > 7);
        screen.feed(b"\x1b[>q");
        assert_eq!(
            screen.take_replies(),
            b"\x1bP>|xterm(370)\x1b\\",
            "its name is the recorded one"
        );
    }

    #[tokio::test]
    async fn nobody_sees_a_blank_screen_meanwhile() {
        let (plane, _events) = DataPlane::start(1 << 20, Clock::system()).unwrap();
        let text = format!("{}last", "a line\r\n".repeat(50_000));
        let printed: Vec<_> = (0..8).map(|_| Printed::new(&text)).collect();
        let runs: Vec<_> =
            printed.iter().zip(1..).map(|(printed, number)| printed.run(number)).collect();
        let readers: Vec<_> = runs
            .iter()
            .cloned()
            .map(|run| std::thread::spawn(move || run.screen().row(3).to_string()))
            .collect();
        runs.iter().for_each(|run| plane.rebuild(run));
        for reader in readers {
            assert_eq!(reader.join().unwrap(), "last");
        }
    }

    #[test]
    fn a_run_that_somebody_waits_for_is_next() {
        let rebuilds = Rebuilds::default();
        let printed = Printed::new("x");
        let runs: Vec<_> = (1..=3).map(|number| printed.run(number)).collect();
        lock(&rebuilds.0).queue.extend(runs.iter().cloned());
        rebuilds.put_first(&runs[2]);
        lock(&rebuilds.0).threads = 1;
        let order: Vec<_> = std::iter::from_fn(|| rebuilds.next()).collect();
        let order: Vec<_> = order.iter().map(|run| run.id.to_string()).collect();
        assert_eq!(order, ["p3", "p1", "p2"]);
        // Rebuilt already, or being rebuilt: nothing changes.
        rebuilds.put_first(&runs[0]);
        assert!(lock(&rebuilds.0).queue.is_empty());
    }
}
