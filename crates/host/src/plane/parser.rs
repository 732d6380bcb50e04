//! The thread that turns logs into screens: every pane with something new gets its turn, in order;
//! one that a person just typed into goes first.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::Event;
use super::echoes;
use super::history::Histories;
use super::live::Live;
use super::matcher::Matcher;
use super::reader::Reader;
use super::turns::Turns;
use patterm_store::sync::lock;

/// Bytes parsed of one pane before the next has its turn; about a millisecond.
const TURN_BYTES: usize = 64 << 10;

/// Bytes fed with the screen locked: whoever looks at it waits no longer than for these.
const PIECE_BYTES: usize = 16 << 10;

/// Bytes read ahead of the parser, over all panes: above it a pane is not read, the rest waits in
/// the kernel, and the program with it. They count as memory of the server.
const LAG_ALL_BYTES: i64 = 4 << 20;

/// And of one pane: what is printed while the parser waits for a processor on a busy machine.
const LAG_MOST_BYTES: u64 = 1 << 20;

/// A pane that is less behind is read however far the others are.
const LAG_LEAST_BYTES: u64 = 32 << 10;

#[derive(Debug)]
pub(super) struct Parser {
    turns: Turns,
    /// Bytes of all panes that are read but not parsed; for a moment below zero where the parser
    /// is quicker to count than the reader.
    unparsed: AtomicI64,
    histories: Mutex<Histories>,
    reader: Arc<Reader>,
    matcher: Arc<Matcher>,
    events: mpsc::Sender<Event>,
}

impl Parser {
    pub(super) fn new(
        reader: Arc<Reader>,
        matcher: Arc<Matcher>,
        events: mpsc::Sender<Event>,
        history_bytes: usize,
    ) -> Self {
        Self {
            turns: Turns::new(|live| &live.queued),
            unparsed: AtomicI64::new(0),
            histories: Mutex::new(Histories::new(history_bytes)),
            reader,
            matcher,
            events,
        }
    }

    /// Notes bytes that were read; `true` if the pane is to wait for the parser.
    pub(super) fn is_behind(&self, live: &Live, read: u64) -> bool {
        let all = self.unparsed.fetch_add(read as i64, Ordering::Relaxed);
        let lag = live.lag();
        lag > LAG_MOST_BYTES || (lag > LAG_LEAST_BYTES && all > LAG_ALL_BYTES)
    }

    /// Tells the control plane something that can wait; `false` if it has too much to do.
    pub(super) fn tell(&self, event: Event) -> bool {
        self.events.try_send(event).is_ok()
    }

    /// Notes bytes that were parsed; `true` if the pane may be read again.
    fn has_caught_up(&self, live: &Live, parsed: u64) -> bool {
        let all = self.unparsed.fetch_sub(parsed as i64, Ordering::Relaxed);
        let lag = live.lag();
        lag < LAG_LEAST_BYTES / 2 || (lag < LAG_MOST_BYTES / 2 && all < LAG_ALL_BYTES / 2)
    }

    /// Puts a pane in line, once.
    pub(super) fn push(&self, live: &Arc<Live>) {
        match live.awaited.swap(false, Ordering::AcqRel) {
            true => self.turns.push_first(live),
            false => self.turns.push(live),
        }
    }

    pub(super) fn run(&self) {
        loop {
            let live = self.turns.next();
            if self.turn(&live) {
                self.push(&live);
            }
        }
    }

    /// Parses one turn's worth; `true` if there is more.
    fn turn(&self, live: &Arc<Live>) -> bool {
        let from = live.parsed.load(Ordering::Acquire);
        let mut replies = Vec::new();
        let mut histories = lock(&self.histories);
        live.screen().history_mut().set_stamp(histories.next_stamp());
        let parsed = live.log.visit(from, TURN_BYTES, |at, bytes| {
            live.screen().skip_to(at);
            for piece in bytes.chunks(PIECE_BYTES) {
                let mut screen = live.screen();
                screen.feed(piece);
                replies.extend(screen.take_replies());
            }
            true
        });
        live.screen().skip_to(parsed);
        live.parsed.store(parsed, Ordering::Release);
        histories.count(live);
        drop(histories);
        let more = parsed < live.log.end();
        if !more {
            // Otherwise the reader does, which has less to do.
            live.release_parsed();
        }
        if !replies.is_empty() && live.push_now(vec![replies]).is_ok() {
            self.reader.write(live);
        }
        let caught_up = self.has_caught_up(live, parsed.saturating_sub(from));
        if caught_up && live.held.swap(false, Ordering::AcqRel) {
            self.reader.resume(live);
        }
        self.publish(live, parsed);
        if !more && echoes::is_awaited(live) {
            self.reader.ring();
        }
        self.matcher.push(live);
        more
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
