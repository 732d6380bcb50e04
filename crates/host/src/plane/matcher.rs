//! The thread that looks for what callers wait for, and for addresses. It reads the log behind the parser, at its own
//! pace, so that a thousand waiters do not slow a flood; and it misses nothing, since the log holds
//! what has long scrolled by.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use patterm_keeper::log::Reader;
use patterm_screen::{Screen, Stripper};
use regex::{Regex, RegexSet, RegexSetBuilder};
use tokio::sync::oneshot;

use super::live::Live;
use super::turns::Turns;
use crate::ports;
use patterm_store::sync::lock;

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
    /// It may ask where a line begins or ends.
    anchored: bool,
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

    /// The offset up to which was looked, if anybody waits.
    pub(super) fn looked(&self) -> Option<u64> {
        (!self.waiters.is_empty()).then_some(self.looked)
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
        let (number, anchored) = (self.last, is_anchored(pattern.as_str()));
        self.waiters.push(Waiter { number, pattern, anchored, from, answer: Some(answer) });
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

    /// All patterns at once.
    fn set(&mut self) -> &Result<RegexSet, regex::Error> {
        self.set.get_or_insert_with(|| {
            let patterns = self.waiters.iter().map(|waiter| waiter.pattern.as_str());
            RegexSetBuilder::new(patterns).size_limit(SET_BYTES).dfa_size_limit(SET_BYTES).build()
        })
    }

    /// Answers every waiter whose pattern is in the line, if it began to wait before that was seen.
    fn look_at(&mut self, line: &str, seen: Seen) {
        self.set();
        let (waiters, set) = (&mut self.waiters, &self.set);
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
            Some(Ok(set)) if !set.is_match(line) => return,
            Some(Ok(set)) => set.matches(line).iter().for_each(|n| answer(&mut waiters[n])),
            _ => waiters.iter_mut().filter(|w| w.pattern.is_match(line)).for_each(answer),
        }
        if answered {
            self.waiters.retain(|waiter| waiter.answer.is_some());
            self.set = None;
        }
    }

    /// Takes text that was printed; line ends and carriage returns end a line.
    fn take_text(&mut self, text: &str, printed: u64) {
        let mut line = std::mem::take(&mut self.line);
        line.push_str(text);
        let ended = memchr::memrchr2(b'\n', b'\r', line.as_bytes()).map_or(0, |end| end + 1);
        if self.may_match(&line[..ended]) {
            for line in line[..ended].split(['\n', '\r']) {
                self.look_at_line(line, printed);
            }
        }
        line.drain(..ended);
        if line.len() > LINE_BYTES {
            self.look_at_line(&line, printed);
            line.clear();
        }
        self.line = line;
    }

    /// Whether anything can be in any line of a text. To ask once for all lines costs much less
    /// than for each, and mostly there is nothing; but where a line begins and ends, only the line
    /// itself can tell.
    fn may_match(&mut self, lines: &str) -> bool {
        let anchored = self.waiters.iter().any(|waiter| waiter.anchored);
        match self.set() {
            Ok(set) if !anchored => set.is_match(lines),
            _ => true,
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

/// Whether a pattern may ask where a line begins or ends. Where a word does, it finds among other
/// lines as well.
fn is_anchored(pattern: &str) -> bool {
    pattern.contains(['^', '$']) || ["\\A", "\\z"].iter().any(|anchor| pattern.contains(anchor))
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

    /// Has a process looked at, if anybody waits for it or its addresses are looked for.
    pub(super) fn push(&self, live: &Arc<Live>) {
        if !lock(&live.waiters).is_empty() || wants_ports(live) {
            self.turns.push(live);
        }
    }

    /// The addresses found so far in what a process printed. The rest of its output, and all it prints
    /// from now on, is looked at by this thread: never by the one that asks.
    pub(super) fn ports(&self, live: &Arc<Live>) -> Vec<ports::Seen> {
        live.ports.ask();
        self.push(live);
        live.ports.seen()
    }

    pub(super) fn run(&self) {
        loop {
            self.step(&self.turns.next());
        }
    }

    /// One turn of one process; it gets another if there is more.
    fn step(&self, live: &Arc<Live>) {
        let mut more = turn(live);
        if wants_ports(live) {
            more |= !live.ports.look(&live.log, live.parsed.load(Ordering::Acquire));
        }
        if more {
            self.push(live);
        }
    }
}

/// Whether there is output in which addresses are still to be looked for.
fn wants_ports(live: &Live) -> bool {
    live.ports.wants(live.parsed.load(Ordering::Acquire))
}

/// What was printed of the line that is not ended at an offset.
fn begun_line(log: &Reader, offset: u64) -> Vec<u8> {
    let from = offset.saturating_sub(LINE_BYTES as u64).max(log.start());
    let copied = log.copy(from, usize::try_from(offset.saturating_sub(from)).unwrap_or(0));
    if copied.end() != offset {
        // Some of what was printed before it is gone.
        return Vec::new();
    }
    let before = copied.bytes;
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
    if lock(&live.waiters).is_empty() {
        return false;
    }
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
    if copied.offset > began {
        // What was between is gone: what was begun before it does not go on here.
        waiters.stripper = Stripper::default();
        waiters.line.clear();
    }
    waiters.looked = copied.end().max(began);
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

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_screen::Size;

    use super::*;
    use crate::process::ProcessId;

    /// A log with room, and a way to print into it.
    struct Printed {
        dir: tempfile::TempDir,
        log: Log,
        live: Arc<Live>,
    }

    impl Printed {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let log = Log::open(&dir.path().join("log"), 64 << 20).unwrap();
            let screen = Screen::new(Size::DEFAULT);
            let live = Live::new(ProcessId::new(1), 1, None, log.reader(), screen, 0);
            Self { dir, log, live: Arc::new(live) }
        }

        /// Prints a text, as the reader and the parser do it.
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
            self.live.parsed.store(self.live.log.end(), Ordering::Release);
            matcher.push(&self.live);
        }
    }

    /// Does what the thread would do, until there is nothing more to do.
    fn run_to_rest(matcher: &Matcher) {
        while let Some(live) = matcher.turns.try_next() {
            matcher.step(&live);
        }
    }

    fn ports(matcher: &Matcher, live: &Arc<Live>) -> Vec<u16> {
        matcher.ports(live).into_iter().map(|seen| seen.port).collect()
    }

    #[test]
    fn to_ask_for_addresses_looks_at_no_output_and_what_is_printed_later_is_looked_at_unasked() {
        let matcher = Matcher::default();
        let mut printed = Printed::new();
        let filler = "12:30\n".repeat(200_000);
        printed.print(&format!("{filler}up at http://localhost:5173/\n"), &matcher);
        run_to_rest(&matcher);
        let live = printed.live.clone();
        assert_eq!(ports(&matcher, &live), [0; 0], "far behind the beginning, and not asked for");
        assert_eq!(ports(&matcher, &live), [0; 0], "a caller's thread does not look");
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &live), [5173]);
        printed.print("and at http://localhost:5174/\n", &matcher);
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &live), [5173, 5174]);
    }

    #[test]
    fn what_a_process_prints_first_is_looked_at_without_a_request() {
        let matcher = Matcher::default();
        let mut printed = Printed::new();
        printed.print("up at http://localhost:5173/\n", &matcher);
        run_to_rest(&matcher);
        assert_eq!(ports(&matcher, &printed.live), [5173]);
    }

    /// The lines that patterns find in a text that comes in two pieces.
    fn found(patterns: &[&str], first: &str, second: &str) -> Vec<Option<String>> {
        let mut waiters = Waiters::default();
        let found: Vec<_> = patterns
            .iter()
            .map(|pattern| {
                let (answer, found) = oneshot::channel();
                waiters.waiters.push(Waiter {
                    number: 1,
                    pattern: Regex::new(pattern).unwrap(),
                    anchored: is_anchored(pattern),
                    from: 0,
                    answer: Some(answer),
                });
                found
            })
            .collect();
        waiters.take_text(first, 1);
        waiters.take_text(second, 1);
        let line = |mut found: oneshot::Receiver<Found>| match found.try_recv() {
            Ok(Found::Line(line)) => Some(line),
            _ => None,
        };
        found.into_iter().map(line).collect()
    }

    #[test]
    fn a_line_is_found_whatever_it_stands_among_and_wherever_it_is_cut() {
        let text = "one\rtwo words  \n\nport 80 \nthree\nport 8080\n";
        let cases = [
            ("two", Some("two words")),
            ("^two", Some("two words")),
            ("words$", Some("two words")),
            (r"\bwords\b", Some("two words")),
            (r"\Aport \d+\z", Some("port 80")),
            (r"port \d{4}", Some("port 8080")),
            (r"^$", None),
            (r"one\stwo", None),
            ("four", None),
        ];
        let patterns = cases.map(|(pattern, _)| pattern);
        let lines = cases.map(|(_, line)| line.map(str::to_owned));
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            for (pattern, line) in patterns.iter().zip(&lines) {
                assert_eq!(
                    found(&[pattern], first, second),
                    std::slice::from_ref(line),
                    "{pattern} cut at {cut}"
                );
            }
            assert_eq!(found(&patterns, first, second), lines, "all at once, cut at {cut}");
        }
    }
}
