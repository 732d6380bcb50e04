//! The thread that parses logs into screens. Every run with new output gets its turn, in order; one that a person
//! has just typed into goes first. The reader parses the echo of a key itself.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};

use super::Event;
use super::ending::RunEnd;
use super::history::Histories;
use super::key_frames::FrameWriter;
use super::matcher::Matcher;
use super::reader::Reader;
use super::run::ProcessRun;
use super::turns::Turns;
use crate::offset::Offset;
use patterm_store::sync::lock;

/// Bytes of one run that are parsed before the next has its turn; about a millisecond.
const TURN_BYTES: usize = 64 << 10;

/// Bytes that are fed while the screen is locked: other threads that need it wait no longer than this takes.
const PIECE_BYTES: usize = 16 << 10;

/// The limit on unparsed bytes of all panes together. Above it a pane is not read: its output waits in the kernel,
/// and its program waits too. Unparsed bytes count as memory of the server.
const LAG_ALL_BYTES: i64 = 4 << 20;

/// The limit for one pane: what a program prints while the parser waits for a processor on a busy machine.
const LAG_MOST_BYTES: u64 = 1 << 20;

/// A pane with fewer unparsed bytes is read however many the others have.
const LAG_LEAST_BYTES: u64 = 32 << 10;

/// Output of a turn up to this size, without a line feed, counts as the echo of a key.
const ECHO_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct OutputParser {
    turns: Turns,
    /// Unparsed bytes of all panes. The reader adds, the parser subtracts; it is briefly negative if the parser is
    /// faster. Only a threshold depends on it, so `Relaxed` is enough.
    unparsed: AtomicI64,
    histories: Mutex<Histories>,
    reader: Arc<Reader>,
    matcher: Arc<Matcher>,
    frames: FrameWriter,
    events: mpsc::Sender<Event>,
    /// Counts turns with bells and notifications.
    notifications: watch::Sender<u64>,
}

impl OutputParser {
    pub(super) fn new(
        reader: Arc<Reader>,
        matcher: Arc<Matcher>,
        frames: FrameWriter,
        events: mpsc::Sender<Event>,
        history_bytes: usize,
    ) -> Self {
        Self {
            turns: Turns::new(|run| &run.parser.queued),
            unparsed: AtomicI64::new(0),
            histories: Mutex::new(Histories::new(history_bytes)),
            reader,
            matcher,
            frames,
            events,
            notifications: watch::Sender::new(0),
        }
    }

    /// Changes after each bell or notification.
    pub(super) fn notifications(&self) -> watch::Receiver<u64> {
        self.notifications.subscribe()
    }

    /// Called by the reader: counts bytes that were read. `true` if the pane must wait for the parser.
    pub(super) fn is_behind(&self, run: &ProcessRun, read: u64) -> bool {
        let all = self.unparsed.fetch_add(read as i64, Ordering::Relaxed);
        let lag = run.lag();
        lag > LAG_MOST_BYTES || (lag > LAG_LEAST_BYTES && all > LAG_ALL_BYTES)
    }

    /// Called by the reader: sends an event that can be dropped. `false` if the channel is full.
    pub(super) fn try_report(&self, event: Event) -> bool {
        self.events.try_send(event).is_ok()
    }

    /// Counts bytes that were parsed; `true` if the pane may be read again.
    fn has_caught_up(&self, run: &ProcessRun, parsed: u64) -> bool {
        let all = self.unparsed.fetch_sub(parsed as i64, Ordering::Relaxed);
        let lag = run.lag();
        lag < LAG_LEAST_BYTES / 2 || (lag < LAG_MOST_BYTES / 2 && all < LAG_ALL_BYTES / 2)
    }

    /// Queues a run, unless it is queued already.
    pub(super) fn push(&self, run: &Arc<ProcessRun>) {
        match run.typing.take_echo_expected() {
            true => self.turns.push_first(run),
            false => self.turns.push(run),
        }
    }

    /// The terminal of a run got another size: its views get another snapshot, and its program the report.
    pub(super) fn resized(&self, run: &Arc<ProcessRun>) {
        self.reader.write(run);
        self.reader.parsed(run);
    }

    pub(super) fn run(&self) {
        loop {
            let run = self.turns.next();
            let more = {
                let _turn = run.parser.turn();
                self.parse(&run)
            };
            self.frames.look_at(&run);
            // Views take what there is while more of it is parsed.
            if run.parser.take_awaited_by_view() {
                self.reader.parsed(&run);
            }
            if more {
                self.push(&run);
            } else if run.reader.take_awaits_parse() {
                self.reader.notify();
            }
        }
    }

    /// Called by the reader: parses the little that it has just read, so that the echo of a key does not wait for
    /// another thread. If the parser is at it, or has more of it to parse, that thread continues.
    pub(super) fn parse_now(&self, run: &Arc<ProcessRun>) {
        let turn = run.parser.try_turn().filter(|_| run.is_rebuilt());
        let Some(turn) = turn else { return self.push(run) };
        run.typing.take_echo_expected();
        run.reader.take_awaits_parse();
        let more = self.parse(run);
        drop(turn);
        if more {
            self.push(run);
        }
    }

    /// Parses one turn's worth of output; `true` if there is more. The caller has the run's turn.
    fn parse(&self, run: &Arc<ProcessRun>) -> bool {
        if !run.is_rebuilt() {
            // It is queued again when it is.
            return false;
        }
        let from = run.parser.parsed();
        let (mut replies, mut notices) = (Vec::new(), Vec::new());
        // Not held meanwhile: two threads parse.
        let stamp = lock(&self.histories).next_stamp();
        run.screen_to_feed().history_mut().set_stamp(stamp);
        let mut is_echo = true;
        let parsed = run.log.visit(from.get(), TURN_BYTES, |at, bytes| {
            is_echo &= bytes.len() <= ECHO_BYTES && !bytes.contains(&b'\n');
            run.screen_to_feed().skip_to(at);
            for piece in bytes.chunks(PIECE_BYTES) {
                let mut screen = run.screen_to_feed();
                screen.feed_flood(piece);
                replies.extend(screen.take_replies());
                notices.extend(screen.take_notices());
            }
            true
        });
        run.screen_to_feed().skip_to(parsed);
        let end = Offset::new(parsed);
        run.parser.set_parsed(end);
        if run.parser.notifications.note(notices, end) {
            self.notifications.send_modify(|count| *count += 1);
        }
        lock(&self.histories).count(run);
        let more = parsed < run.log.end();
        if !more {
            // Otherwise the reader does it, which has less work.
            run.release_parsed();
        }
        if !replies.is_empty() && run.typing.push_now(vec![replies]).is_ok() {
            self.reader.write(run);
        }
        if self.has_caught_up(run, end.bytes_since(from)) && run.reader.resume() {
            self.reader.resume(run);
        }
        self.publish(run, end);
        match is_echo {
            true => self.matcher.push_echo(run),
            false => self.matcher.push(run),
        }
        more
    }

    /// Publishes how far the run is, and reports its end when that is reached.
    fn publish(&self, run: &Arc<ProcessRun>, parsed: Offset) {
        let Some(end) = run.advance(parsed) else { return };
        let (id, run) = (run.id.clone(), run.number);
        let event = match end {
            RunEnd::Exited(exit) => Event::Ended { id, run, exit },
            RunEnd::Lost => Event::Lost { id, run },
        };
        // It fails only while the server ends, when nobody needs the event.
        let _ = self.events.blocking_send(event);
    }
}
