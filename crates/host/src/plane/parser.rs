//! The thread that turns logs into screens: every pane with something new gets its turn, in order.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

use tokio::sync::mpsc;

use super::Event;
use super::live::{Live, lock};
use super::matcher::Matcher;
use super::reader::Reader;

/// Bytes parsed of one pane before the next has its turn; about a millisecond.
const TURN_BYTES: usize = 64 << 10;

/// Bytes fed with the screen locked: whoever looks at it waits no longer than for these.
const PIECE_BYTES: usize = 16 << 10;

/// Bytes read ahead of the parser, above which a pane is not read: the rest waits in the kernel,
/// and the program with it.
pub(super) const LAG_BYTES: u64 = 512 << 10;

#[derive(Debug)]
pub(super) struct Parser {
    line: Mutex<VecDeque<Arc<Live>>>,
    came: Condvar,
    reader: Arc<Reader>,
    matcher: Arc<Matcher>,
    events: mpsc::Sender<Event>,
}

impl Parser {
    pub(super) fn new(
        reader: Arc<Reader>,
        matcher: Arc<Matcher>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { line: Mutex::default(), came: Condvar::new(), reader, matcher, events }
    }

    /// Puts a pane in line, once.
    pub(super) fn push(&self, live: &Arc<Live>) {
        if !live.queued.swap(true, Ordering::AcqRel) {
            lock(&self.line).push_back(live.clone());
            self.came.notify_one();
        }
    }

    pub(super) fn run(&self) {
        loop {
            let live = self.next();
            // Cleared first: what comes from now on puts the pane in line again.
            live.queued.store(false, Ordering::Release);
            if self.turn(&live) {
                self.push(&live);
            }
        }
    }

    fn next(&self) -> Arc<Live> {
        let mut line = lock(&self.line);
        loop {
            if let Some(live) = line.pop_front() {
                return live;
            }
            line = self.came.wait(line).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Parses one turn's worth; `true` if there is more.
    fn turn(&self, live: &Arc<Live>) -> bool {
        let from = live.parsed.load(Ordering::Acquire);
        let mut replies = Vec::new();
        let parsed = live.log.visit(from, TURN_BYTES, |bytes| {
            for piece in bytes.chunks(PIECE_BYTES) {
                let mut screen = live.screen();
                screen.feed(piece);
                replies.extend(screen.take_replies());
            }
            true
        });
        live.parsed.store(parsed, Ordering::Release);
        if !replies.is_empty() && live.push(vec![replies]).is_ok() {
            self.reader.write(live);
        }
        if live.lag() < LAG_BYTES / 2 && live.held.swap(false, Ordering::AcqRel) {
            self.reader.resume(live);
        }
        self.publish(live, parsed);
        self.matcher.push(live);
        parsed < live.log.end()
    }

    /// Tells whoever waits how far the process is, and its end when that is reached.
    fn publish(&self, live: &Arc<Live>, parsed: u64) {
        let ended = lock(&live.ending).take_if(|(_, at)| parsed >= *at);
        live.progress.send_modify(|progress| {
            progress.parsed = parsed;
            if let Some((exit, _)) = ended {
                progress.exit = exit;
                progress.lost = exit.is_none();
            }
        });
        let Some((exit, _)) = ended else { return };
        let (id, run) = (live.id.clone(), live.run);
        let event = match exit {
            Some(exit) => Event::Ended { id, run, exit },
            None => Event::Lost { id, run },
        };
        // Without a control plane the server is ending, and nobody needs to know.
        let _ = self.events.blocking_send(event);
    }
}
