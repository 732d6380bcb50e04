//! A process while it has a pane: what both planes share of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use patterm_keeper::Pane;
use patterm_keeper::log;
use patterm_screen::{Line, Screen, Size};
use tokio::sync::watch;

use super::draft_mark::DraftMark;
use super::hand::{Hand, Typed, Typist};
use super::input::{Input, InputFull};
use super::matcher::Waiters;
use super::trouble::Trouble;
use super::views::Views;
use crate::ports::Ports;
use crate::process::{Exit, ProcessId};
use crate::tree::{self, Usage};
use patterm_store::sync::lock;

/// Memory of parsed output is given back in steps of this.
const RELEASE_BYTES: u64 = 64 << 10;

/// How far ahead of the output the mark in the process table is: a log that lost its end goes on there.
/// Each new mark writes the table to the disk, so that a flood must not need one every second; whatever
/// a program prints, an offset stays far below 2^53.
pub(crate) const MARK_BYTES: u64 = 8 << 30;

/// What it uses is not looked at again before this: to ask the kernel takes longer than all else that
/// is told of it.
const USAGE_AGE: Duration = Duration::from_millis(250);

/// Lines, and bytes of them, that are copied with the screen locked: other readers of the screen, the
/// thread that answers calls among them, wait for about a millisecond.
const LINES_AT_ONCE: usize = 4096;
const LINE_BYTES_AT_ONCE: usize = 1 << 20;

/// How far a process has come; watched by whoever waits for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The offset up to which its output is on its screen.
    pub(crate) parsed: u64,
    /// How it ended, once it has and all its output is parsed.
    pub(crate) exit: Option<Exit>,
    /// Nobody knows how it ended.
    pub(crate) lost: bool,
    /// Its end is written down.
    pub(crate) settled: bool,
    /// Nothing is left of it and of what it ever started.
    pub(crate) empty: bool,
}

impl Progress {
    /// Whether nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.exit.is_some() || self.lost
    }
}

/// One life of a process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: ProcessId,
    /// Which of its lives.
    pub(crate) run: u64,
    /// Its pane; `None` for a life that was over before this server began and whose keeper is gone.
    pub(crate) pane: Option<Arc<Pane>>,
    /// Its init and the process above that, as they were when first asked for.
    init: OnceLock<(i32, Option<i32>)>,
    pub(crate) log: log::Reader,
    screen: Mutex<Screen>,
    pub(super) input: Mutex<Input>,
    hand: Mutex<Hand>,
    /// Where it is noted for the next server that there is a draft.
    draft_mark: OnceLock<DraftMark>,
    /// Who waits for something on it.
    pub(super) waiters: Mutex<Waiters>,
    /// Addresses it printed.
    pub(crate) ports: Ports,
    /// Who looks at it.
    views: Mutex<Views>,
    /// Why its output cannot be kept as it should be.
    trouble: Mutex<Option<Trouble>>,
    /// What it used when somebody last asked.
    usage: Mutex<Option<(Instant, Usage)>>,
    /// In the matcher's line already.
    pub(super) matching: AtomicBool,
    pub(super) progress: watch::Sender<Progress>,
    /// The offset up to which output is parsed; only the parser moves it.
    pub(super) parsed: AtomicU64,
    /// The offset up to which memory of the log was given back.
    pub(super) released: AtomicU64,
    /// The offset that is noted for it: it has printed less.
    pub(crate) mark: AtomicU64,
    /// The reader's number for it; 0 as long as it has none.
    pub(super) token: AtomicU64,
    /// A person typed into it and waits for what it prints.
    pub(super) awaited: AtomicBool,
    /// The reader waits for what it printed to be parsed.
    pub(super) echoes: AtomicBool,
    /// In the parser's line already.
    pub(super) queued: AtomicBool,
    /// The reader waits for the parser.
    pub(super) held: AtomicBool,
    /// It was asked to end.
    pub(crate) stopping: AtomicBool,
    /// The end, and the offset at which it is to be told.
    pub(super) ending: Mutex<Option<(Option<Exit>, u64)>>,
}

impl Live {
    /// A life whose screen shows what the log holds up to `parsed`.
    pub(crate) fn new(
        id: ProcessId,
        run: u64,
        pane: Option<Arc<Pane>>,
        log: log::Reader,
        screen: Screen,
        parsed: u64,
    ) -> Self {
        Self {
            id,
            run,
            pane,
            init: OnceLock::new(),
            log,
            screen: Mutex::new(screen),
            input: Mutex::default(),
            hand: Mutex::default(),
            draft_mark: OnceLock::new(),
            waiters: Mutex::default(),
            ports: Ports::default(),
            views: Mutex::new(Views::new(parsed)),
            trouble: Mutex::default(),
            usage: Mutex::default(),
            matching: AtomicBool::new(false),
            progress: watch::Sender::new(Progress { parsed, ..Progress::default() }),
            parsed: AtomicU64::new(parsed),
            released: AtomicU64::new(parsed),
            mark: AtomicU64::new(0),
            token: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            echoes: AtomicBool::new(false),
            queued: AtomicBool::new(false),
            held: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            ending: Mutex::new(None),
        }
    }

    /// The screen. Held by the parser for the time of one piece of output, and by others for the
    /// time of one look.
    pub(crate) fn screen(&self) -> MutexGuard<'_, Screen> {
        lock(&self.screen)
    }

    /// Hands on every line from a number on, the history's and the screen's, until `take` says `false`. The
    /// screen is locked for a slice of them at a time, and not while `take` runs.
    pub(crate) fn visit_lines(&self, from: u64, mut take: impl FnMut(Line<'static>) -> bool) {
        let mut next = Some(from);
        while let Some(from) = next {
            let (slice, rest) = self.slice_of_lines(from);
            next = rest;
            if !slice.into_iter().all(&mut take) {
                return;
            }
        }
    }

    /// Some lines from a number on, and the number of the next, if there may be more.
    fn slice_of_lines(&self, from: u64) -> (Vec<Line<'static>>, Option<u64>) {
        let (mut slice, mut bytes) = (Vec::<Line<'static>>::new(), 0);
        for line in self.screen().lines(from) {
            let is_full = slice.len() >= LINES_AT_ONCE || bytes >= LINE_BYTES_AT_ONCE;
            // Of a line that is too long to be one, all parts have its number.
            let goes_on = slice.last().is_some_and(|last| last.number == line.number);
            if is_full && !goes_on {
                return (slice, Some(line.number));
            }
            bytes += line.text.len();
            let text = line.text.into_owned().into();
            slice.push(Line { number: line.number, offset: line.offset, text });
        }
        (slice, None)
    }

    /// Its last lines, oldest first: so many, or all there are.
    pub(crate) fn last_lines(&self, lines: usize) -> VecDeque<String> {
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
            // A resize skips numbers: there are fewer lines than these.
            numbers = numbers.saturating_mul(2);
        }
    }

    /// Where the last so many numbers of lines begin, and whether there are none before.
    fn last_numbers(&self, numbers: u64) -> (u64, bool) {
        let screen = self.screen();
        let first = screen.history().first_line();
        let last = screen.lines(screen.history().next_line().saturating_sub(1)).last();
        let from = last.map_or(0, |last| (last.number + 1).saturating_sub(numbers));
        (from.max(first), from <= first)
    }

    /// Who looks at it.
    pub(crate) fn views(&self) -> MutexGuard<'_, Views> {
        lock(&self.views)
    }

    /// Why its output cannot be kept as it should be.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        lock(&self.trouble).clone()
    }

    /// Notes that it cannot, or can again; `true` if that is news.
    pub(super) fn set_trouble(&self, trouble: Option<Trouble>) -> bool {
        std::mem::replace(&mut *lock(&self.trouble), trouble.clone()) != trouble
    }

    /// What everything below its init uses, or used a moment ago.
    pub(crate) fn usage(&self, init: i32) -> Usage {
        let mut known = lock(&self.usage);
        match &*known {
            Some((at, usage)) if at.elapsed() < USAGE_AGE => usage.clone(),
            _ => known.insert((Instant::now(), tree::usage(init))).1.clone(),
        }
    }

    /// Gives its terminal another size.
    pub(crate) fn resize(&self, size: Option<Size>) {
        let Some(size) = size else { return };
        let mut screen = self.screen();
        if screen.size() == size {
            return;
        }
        screen.resize(size);
        // The program hears of it while nobody sees the screen in between.
        if let Some(pane) = &self.pane {
            let (rows, columns) = (size.rows, size.columns);
            let _ = pane.resize(patterm_keeper::Size { rows, columns });
        }
    }

    /// How many wait for something on it.
    pub(crate) fn waiter_count(&self) -> usize {
        lock(&self.waiters).len()
    }

    /// Follows the process.
    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Says that it was over before this server began.
    pub(crate) fn set_over(&self, exit: Option<Exit>) {
        self.progress.send_modify(|progress| {
            progress.exit = exit;
            progress.lost = exit.is_none();
            progress.settled = true;
            progress.empty = true;
        });
    }

    /// How its program stands, as its init wrote it down.
    pub(crate) fn status(&self) -> Option<patterm_keeper::Status> {
        self.pane.as_ref()?.status().ok().flatten()
    }

    /// The process that gathers all it starts, as long as that lives.
    pub(crate) fn init(&self) -> Option<i32> {
        // Afterwards the number may be another's.
        if self.progress.borrow().empty {
            return None;
        }
        if let Some((init, _)) = self.init.get() {
            return Some(*init);
        }
        let init = self.status()?.init;
        Some(self.init.get_or_init(|| (init, tree::parent_of(init))).0)
    }

    /// Whether its init was killed before it had ended everything below it, and the keeper was not
    /// above it to end the rest: what ran there may run on, where nothing says that it did.
    pub(crate) fn is_left_behind(&self, keeper: Option<i32>) -> bool {
        let above = self.init.get().and_then(|(_, above)| *above);
        let is_gathered = above.is_some() && above == keeper;
        // Looked at where it is seen at once: the reader may be told of it in a moment only.
        let is_gone = self.pane.as_ref().is_some_and(|pane| pane.is_abandoned());
        is_gone && !is_gathered && self.status().is_some_and(|status| !status.empty)
    }

    /// Waits until an end that was seen is written down as well: whoever hears of it and asks for
    /// the status must find it there.
    pub(crate) async fn noted(&self) {
        let _ = self.watch().wait_for(|progress| progress.settled).await;
    }

    /// Says that nothing is left of it.
    pub(super) fn set_empty(&self) {
        self.progress.send_if_modified(|progress| !std::mem::replace(&mut progress.empty, true));
    }

    /// Says that its end is written down.
    pub(crate) fn settle(&self) {
        self.progress.send_modify(|progress| progress.settled = true);
    }

    /// Puts pieces in line for the program, all or none; the plane must be told to write.
    pub(crate) fn push(&self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        lock(&self.input).push(pieces)
    }

    /// The same for whoever has the keyboard, and for the terminal's own answers.
    pub(super) fn push_now(&self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        lock(&self.input).push_now(pieces)
    }

    /// Notes what a person typed.
    pub(crate) fn note_typed(&self, typed: Typed) {
        self.note_hand(typed);
    }

    /// Notes whether input that no person typed leaves an unfinished text.
    pub(crate) fn note_draft(&self, bytes: &[u8]) {
        let typed = Typist::default().read_whole(bytes);
        self.note_hand(Typed { any: false, ..typed });
    }

    fn note_hand(&self, typed: Typed) {
        let mut hand = lock(&self.hand);
        let before = hand.draft;
        hand.note(typed);
        if hand.draft != before
            && let Some(mark) = self.draft_mark.get()
        {
            mark.set(self.run, hand.draft);
        }
    }

    /// Takes up whether an earlier server left a draft in it, and notes that for the next one from here on.
    pub(crate) fn keep_draft(&self, mark: DraftMark) {
        let mut hand = lock(&self.hand);
        hand.draft = mark.is_set(self.run);
        if !hand.draft {
            mark.set(self.run, false);
        }
        let _ = self.draft_mark.set(mark);
    }

    /// What comes from a view: what a person types, and what the terminal sends by itself.
    pub(crate) fn type_in(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        self.awaited.store(true, Ordering::Release);
        self.push(vec![bytes])
    }

    /// Writes what waits to the program's terminal, as much as it takes; `false` if that is full.
    pub(super) fn flush(&self) -> bool {
        let Some(pane) = &self.pane else { return true };
        let mut input = lock(&self.input);
        let drained = input.drain(|bytes| rustix::io::write(pane.master(), bytes));
        drained.is_ok() || input.is_empty()
    }

    /// What is known of the person who types into it.
    pub(crate) fn hand(&self) -> Hand {
        *lock(&self.hand)
    }

    /// Whether everything that was typed has reached the program's terminal.
    pub(crate) fn is_written(&self) -> bool {
        lock(&self.input).is_empty()
    }

    /// Whether the program has read all of it.
    pub(crate) fn is_read(&self) -> bool {
        let unread = self.pane.as_ref().map(|pane| pane.unread());
        self.is_written() && matches!(unread, Some(Ok(0)))
    }

    pub(super) fn reserve(&self) -> bool {
        lock(&self.input).reserve()
    }

    pub(super) fn release(&self) {
        lock(&self.input).release();
    }

    /// Gives the memory of output that is parsed back, if it is worth a system call.
    pub(super) fn release_parsed(&self) {
        let parsed = self.parsed.load(Ordering::Acquire);
        let released = self.released.load(Ordering::Relaxed);
        if parsed >= released + RELEASE_BYTES {
            self.log.release(released, parsed);
            self.released.fetch_max(parsed, Ordering::Relaxed);
        }
    }

    /// The offset from which output is still needed: it is not parsed, or not yet looked at by whom it
    /// is waited for.
    pub(super) fn needed(&self) -> u64 {
        let looked = lock(&self.waiters).looked();
        self.parsed.load(Ordering::Acquire).min(looked.unwrap_or(u64::MAX))
    }

    /// Bytes that are read but not parsed.
    pub(super) fn lag(&self) -> u64 {
        self.log.end().saturating_sub(self.parsed.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;

    use super::*;

    /// A life whose screen shows this text.
    fn live_of(text: &str) -> (tempfile::TempDir, Live) {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), 1 << 20).unwrap();
        let mut screen = Screen::new(Size::DEFAULT);
        screen.feed(text.as_bytes());
        (dir, Live::new(ProcessId::new(1), 1, None, log.reader(), screen, 0))
    }

    #[test]
    fn lines_in_slices_are_the_same_as_all_at_once() {
        let lines: String = (0..3 * LINES_AT_ONCE).map(|n| format!("line {n}\r\n")).collect();
        // Longer than any line that is kept as one.
        let long = "0123456789".repeat(40_000);
        let many_long = format!("{}\r\n", "x".repeat(5_000)).repeat(500);
        for text in [lines, format!("a\r\n{long}\r\nb\r\n"), many_long, String::new()] {
            let (_dir, live) = live_of(&text);
            let mut visited = Vec::new();
            live.visit_lines(0, |line| {
                visited.push(line);
                true
            });
            let screen = live.screen();
            assert!(visited.iter().eq(screen.lines(0).collect::<Vec<_>>().iter()));
            let all: Vec<_> = visited.into_iter().map(|line| line.text.into_owned()).collect();
            drop(screen);
            for wanted in [0, 1, 7, LINES_AT_ONCE + 1, usize::MAX] {
                let last = all.len().saturating_sub(wanted);
                assert!(live.last_lines(wanted).iter().eq(&all[last..]), "the last {wanted}");
            }
        }
    }

    #[test]
    fn the_screen_is_free_while_lines_are_taken() {
        let (_dir, live) = live_of("one\r\ntwo\r\n");
        let mut free = Vec::new();
        live.visit_lines(0, |_| {
            free.push(live.screen.try_lock().is_ok());
            free.len() < 2
        });
        assert_eq!(free, [true, true]);
    }
}
