//! Rebuilds the screens of runs that an earlier server left, from their logs, on threads of their own. The server
//! answers requests meanwhile; a request that needs a screen waits for that screen, which is rebuilt next.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use patterm_keeper::log;
use patterm_screen::{Screen, Size, TerminalName};

use super::parser::OutputParser;
use super::run::ProcessRun;
use crate::offset::Offset;
use patterm_store::sync::lock;

/// How many screens are rebuilt at the same time. They share the processors with everything else that starts.
const THREADS: usize = 2;

/// The output from which a screen is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The size of the terminal.
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

impl Replay {
    /// Whether there is no output: the screen is blank.
    pub(crate) fn is_empty(&self) -> bool {
        self.from >= self.until
    }

    /// The screen before any output.
    pub(crate) fn blank_screen(&self) -> Screen {
        let mut screen = self.new_screen();
        screen.skip_to(self.until.get());
        screen.raise_version(self.version_base);
        screen
    }

    fn new_screen(&self) -> Screen {
        let mut screen = Screen::new(self.size);
        screen.set_terminal_name(self.terminal_name.clone());
        screen
    }

    /// The screen after the output.
    fn screen(&self, log: &log::Reader) -> Screen {
        let mut screen = self.new_screen();
        screen.set_offset(self.from.get().max(log.start()));
        // Replies, notifications and clipboard writes must not happen again.
        screen.set_replay(true);
        let bytes = usize::try_from(self.until.bytes_since(self.from)).unwrap_or(usize::MAX);
        let end = log.visit(self.from.get(), bytes, |at, bytes| {
            // Some output may have been dropped, so that the last part goes beyond the end.
            let room = usize::try_from(self.until.get().saturating_sub(at)).unwrap_or(usize::MAX);
            if room > 0 {
                screen.skip_to(at);
                screen.feed(&bytes[..bytes.len().min(room)]);
            }
            room > bytes.len()
        });
        log.release(self.from.get(), end.min(self.until.get()));
        screen.set_replay(false);
        screen.skip_to(self.until.get());
        screen.raise_version(self.version_base);
        screen
    }
}

/// Whether the screen of a run is complete.
#[derive(Debug)]
pub(super) struct Rebuilding {
    /// Set with `Release` after the screen is in its place, and loaded with `Acquire`.
    is_done: AtomicBool,
    /// What is still to be replayed.
    replay: Mutex<Option<Replay>>,
    done: Condvar,
}

impl Rebuilding {
    pub(super) fn of(replay: Option<Replay>) -> Self {
        Self {
            is_done: AtomicBool::new(replay.is_none()),
            replay: Mutex::new(replay),
            done: Condvar::new(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Blocks until the screen is complete. Tasks wait for it with [`super::DataPlane::rebuilt`] instead.
    pub(super) fn wait(&self) {
        if self.is_done() {
            return;
        }
        let mut replay = lock(&self.replay);
        while replay.is_some() {
            replay = self.done.wait(replay).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The screen after everything that is to be replayed, and the offset where that ends; `None` if nothing is.
    pub(super) fn replayed(&self, log: &log::Reader) -> Option<(Screen, Offset)> {
        let replay = lock(&self.replay).clone()?;
        // Without its screen, a pane could not be used at all.
        let screen = catch_unwind(AssertUnwindSafe(|| replay.screen(log))).unwrap_or_else(|_| {
            tracing::error!("cannot rebuild a screen from its log; it begins blank");
            replay.blank_screen()
        });
        Some((screen, replay.until))
    }

    pub(super) fn set_done(&self) {
        self.is_done.store(true, Ordering::Release);
        *lock(&self.replay) = None;
        self.done.notify_all();
    }
}

/// The runs whose screens are still to be rebuilt.
#[derive(Debug, Default)]
pub(super) struct Rebuilds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Arc<ProcessRun>>,
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
            run.rebuild();
            // Output that came meanwhile is parsed now.
            parser.push(&run);
        }
    }

    fn next(&self) -> Option<Arc<ProcessRun>> {
        let mut state = lock(&self.0);
        let run = state.queue.pop_front();
        if run.is_none() {
            state.threads -= 1;
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;

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
            let replay = Replay {
                size: Size::new(4, 20),
                from: Offset::START,
                until,
                version_base: 7,
                terminal_name: TerminalName::try_from("xterm(370)".to_owned()).unwrap(),
            };
            let (id, first) = (ProcessId::new(number), RunNumber::FIRST);
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
