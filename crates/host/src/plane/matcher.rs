//! The thread that looks for what callers wait for. It reads the log behind the parser, at its own
//! pace, so that a thousand waiters do not slow a flood; and it misses nothing, since the log holds
//! what has long scrolled by.

use std::sync::Arc;

use patterm_keeper::log::Reader;
use patterm_screen::{Screen, Stripper};
use regex::{Regex, RegexSet, RegexSetBuilder};
use tokio::sync::oneshot;

use super::live::{Live, lock};
use super::turns::Turns;

/// Bytes looked at of one pane before the next has its turn.
const TURN_BYTES: usize = 256 << 10;

/// A line longer than this is looked at in pieces of it.
const LINE_BYTES: usize = 64 << 10;

/// Memory that one set of patterns may take; the same again for its automaton. More and the
/// patterns are tried one by one.
const SET_BYTES: usize = 32 << 20;

/// What a waiter hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The line that matched.
    Line(String),
    /// The process ended without it.
    Over,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    pattern: Regex,
    /// Where in the output it began to wait; what was printed before does not count.
    from: u64,
    answer: Option<oneshot::Sender<Found>>,
}

/// Where a line was seen.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// In the output, whose last byte stands before this offset.
    Printed { before: u64 },
    /// On the screen, when these had come: waiters are numbered as they come.
    Shown { known: u64 },
}

impl Seen {
    fn counts_for(self, waiter: &Waiter) -> bool {
        match self {
            Self::Printed { before } => waiter.from < before,
            Self::Shown { known } => waiter.number <= known,
        }
    }
}

/// Who waits for something on one process.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    waiters: Vec<Waiter>,
    last: u64,
    /// All patterns at once; made anew when they change.
    set: Option<Result<RegexSet, regex::Error>>,
    /// What was looked at, and what of the last line is not ended yet.
    looked: u64,
    stripper: Stripper,
    line: String,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    fn add(&mut self, log: &Reader, pattern: Regex, from: u64) -> (u64, oneshot::Receiver<Found>) {
        if self.waiters.is_empty() {
            // Nobody looked for a while: begin where the newest waiter does, with the line that
            // is begun there.
            self.looked = from;
            self.stripper = Stripper::default();
            let text = self.stripper.feed(&begun_line(log, from));
            let begun = text.rsplit(['\n', '\r']).next().unwrap_or_default();
            begun.clone_into(&mut self.line);
        }
        let (answer, found) = oneshot::channel();
        self.last += 1;
        self.waiters.push(Waiter { number: self.last, pattern, from, answer: Some(answer) });
        self.set = None;
        (self.last, found)
    }

    /// How far to look in one go: not past the place where somebody began to wait, so that what
    /// was printed before is told apart from what came after.
    fn look_to(&self, upto: u64) -> u64 {
        let begins = self.waiters.iter().map(|waiter| waiter.from);
        begins.filter(|from| *from > self.looked).fold(upto, u64::min)
    }

    fn remove(&mut self, number: u64) {
        self.waiters.retain(|waiter| waiter.number != number);
        self.set = None;
    }

    /// Answers every waiter whose pattern is in the line, if it began to wait before that was seen.
    fn look_at(&mut self, line: &str, seen: Seen) {
        let waiters = &mut self.waiters;
        let set = self.set.get_or_insert_with(|| {
            let patterns = waiters.iter().map(|waiter| waiter.pattern.as_str());
            RegexSetBuilder::new(patterns).size_limit(SET_BYTES).dfa_size_limit(SET_BYTES).build()
        });
        let mut answered = false;
        let mut answer = |waiter: &mut Waiter| {
            if seen.counts_for(waiter)
                && let Some(answer) = waiter.answer.take()
            {
                let _ = answer.send(Found::Line(line.trim_end().to_owned()));
                answered = true;
            }
        };
        match set {
            // Whether any matches is told much sooner than which.
            Ok(set) if !set.is_match(line) => return,
            Ok(set) => set.matches(line).iter().for_each(|n| answer(&mut waiters[n])),
            Err(_) => waiters.iter_mut().filter(|w| w.pattern.is_match(line)).for_each(answer),
        }
        if answered {
            self.waiters.retain(|waiter| waiter.answer.is_some());
            self.set = None;
        }
    }

    /// Takes text that was printed; line ends and carriage returns end a line.
    fn take_text(&mut self, text: &str, printed: u64) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let ended = piece.ends_with(['\n', '\r']);
            if ended && self.line.is_empty() {
                self.look_at_line(piece, printed);
                continue;
            }
            self.line.push_str(piece);
            if ended || self.line.len() > LINE_BYTES {
                let line = std::mem::take(&mut self.line);
                self.look_at_line(&line, printed);
            }
        }
    }

    fn look_at_line(&mut self, line: &str, printed: u64) {
        let line = line.trim_end();
        if !self.waiters.is_empty() && !line.is_empty() {
            self.look_at(line, Seen::Printed { before: printed });
        }
    }

    fn over(&mut self) {
        for waiter in self.waiters.drain(..) {
            if let Some(answer) = waiter.answer {
                let _ = answer.send(Found::Over);
            }
        }
    }
}

/// A place in line that is given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    live: Arc<Live>,
    number: u64,
    /// Resolves when the pattern was found or cannot come any more.
    pub(crate) found: oneshot::Receiver<Found>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.live.waiters).remove(self.number);
    }
}

#[derive(Debug)]
pub(super) struct Matcher {
    turns: Turns,
}

impl Default for Matcher {
    fn default() -> Self {
        Self { turns: Turns::new(|live| &live.matching) }
    }
}

impl Matcher {
    /// Waits for a pattern in what a process prints from `from` on, and on its screen.
    pub(super) fn wait(&self, live: &Arc<Live>, pattern: Regex, from: u64) -> Waiting {
        let (number, found) = lock(&live.waiters).add(&live.log, pattern, from);
        self.push(live);
        Waiting { live: live.clone(), number, found }
    }

    /// Has a process looked at, if anybody waits for it.
    pub(super) fn push(&self, live: &Arc<Live>) {
        if !lock(&live.waiters).is_empty() {
            self.turns.push(live);
        }
    }

    pub(super) fn run(&self) {
        loop {
            let live = self.turns.next();
            if turn(&live) {
                self.push(&live);
            }
        }
    }
}

/// What was printed of the line that is not ended at an offset.
fn begun_line(log: &Reader, offset: u64) -> Vec<u8> {
    let from = offset.saturating_sub(LINE_BYTES as u64).max(log.start());
    let before = log.copy(from, usize::try_from(offset.saturating_sub(from)).unwrap_or(0)).bytes;
    match before.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => before[end + 1..].to_vec(),
        None if from == 0 => before,
        // Longer than any line that is looked at whole.
        None => Vec::new(),
    }
}

/// The lines on the screen now, wrapped rows joined.
pub(crate) fn visible_lines(screen: &Screen) -> Vec<String> {
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

/// Looks at what is new on one process; `true` if there is more.
fn turn(live: &Arc<Live>) -> bool {
    let progress = *live.watch().borrow();
    // The screen first, so that the waiters' lock is never held while waiting for it. Who comes
    // meanwhile has looked at the screen itself, and this picture of it is older.
    let known = lock(&live.waiters).last;
    let shown = visible_lines(&live.screen());
    let mut waiters = lock(&live.waiters);
    for line in &shown {
        if waiters.is_empty() {
            return false;
        }
        if !line.is_empty() {
            waiters.look_at(line, Seen::Shown { known });
        }
    }
    let upto = progress.parsed;
    let to = waiters.look_to(upto);
    let most = usize::try_from(to.saturating_sub(waiters.looked)).unwrap_or(usize::MAX);
    let began = waiters.looked;
    let copied = live.log.copy(began, most.min(TURN_BYTES));
    waiters.looked = (copied.offset + copied.bytes.len() as u64).max(began);
    live.log.release(began, waiters.looked);
    let text = waiters.stripper.feed(&copied.bytes);
    let printed = waiters.looked;
    waiters.take_text(&text, printed);
    let unended = waiters.line.clone();
    if !waiters.is_empty() && !unended.trim_end().is_empty() {
        waiters.look_at(&unended, Seen::Printed { before: printed });
    }
    let more = waiters.looked < upto;
    if progress.is_over() && !more {
        waiters.over();
    }
    more
}
