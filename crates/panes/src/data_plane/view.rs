//! A view of a process: a snapshot of its screen, then its output. Nothing is queued for a view: it reads the log at its
//! own pace, and one that falls too far behind starts again from a snapshot. The reader's thread serves it, so that a key
//! and its echo pass through one thread.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use patterm_screen::Size;
use patterm_wire::events::Actor;
use patterm_wire::view::{FromView, ToView, ViewDecoder, ViewSize};
use tokio::sync::{Notify, oneshot};

use super::run::ProcessRun;
use super::typing_state::{Typed, Typist};

/// Bytes of output in one frame.
const OUTPUT_BYTES: usize = 64 << 10;

/// A view this far behind gets a snapshot instead of the output.
const LAG_BYTES: u64 = 256 << 10;

/// The same for a view that draws snapshots anyway: more output than this is not parsed twice.
const SNAPSHOT_LAG_BYTES: u64 = 32 << 10;

/// The minimum time between two snapshots of such a view: it would not draw more.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(16);

/// Bytes read from a view at once.
const READ_BYTES: usize = 16 << 10;

/// How long an escape may be the beginning of a sequence.
const ESCAPE_PAUSE: Duration = Duration::from_millis(30);

/// A view to be served.
#[derive(Debug)]
pub struct NewView {
    /// The connection to the client, which does not block.
    pub stream: UnixStream,
    /// The process that is shown.
    pub run: Arc<ProcessRun>,
    /// Its number among the views of the process.
    pub number: u64,
    /// Who types in it.
    pub typist: Arc<Actor>,
    /// Bytes to be sent before the first frame.
    pub greeting: Vec<u8>,
    /// Bytes of the client that were read already.
    pub received: Vec<u8>,
    /// The client draws frames of its own: output that the next frame replaces may be left out.
    pub prefers_snapshots: bool,
}

/// What happens in a view, for the control plane.
#[derive(Debug, Default)]
pub struct ViewNews {
    /// A person typed.
    pub typed: Notify,
    /// How many bytes were typed so far. Only counted: the order to other memory does not matter.
    pub typed_bytes: AtomicU64,
    /// The view changed the size of the terminal.
    pub resized: Notify,
}

/// What a client sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heard {
    /// There is input for the program.
    pub(super) input: bool,
    /// The terminal has another size, and the program may have to be told.
    pub(super) resized: bool,
}

/// A view that the reader's thread serves.
#[derive(Debug)]
pub(super) struct View {
    stream: UnixStream,
    pub(super) run: Arc<ProcessRun>,
    pub(super) news: Arc<ViewNews>,
    decoder: ViewDecoder,
    /// At most one frame; the next one is prepared once it is sent.
    outbox: Vec<u8>,
    sent: usize,
    /// The offset after the last byte that was sent; `None` before the first snapshot.
    at: Option<u64>,
    /// The number of resizes before its last snapshot.
    resizes: u64,
    end_sent: bool,
    number: u64,
    prefers_snapshots: bool,
    /// When it last got a snapshot.
    last_snapshot: Option<Instant>,
    /// Much output came before the next snapshot is due.
    is_delayed: bool,
    /// A full frame was sent and there may be more: other panes and views are served first.
    has_more: bool,
    typist: Typist,
    /// Who types.
    actor: Arc<Actor>,
    /// When input last came.
    last_input: Instant,
    /// Dropped with the view.
    _over: oneshot::Sender<()>,
}

impl View {
    pub(super) fn new(view: NewView, news: Arc<ViewNews>, over: oneshot::Sender<()>) -> Self {
        let mut decoder = ViewDecoder::default();
        decoder.feed(&view.received);
        Self {
            stream: view.stream,
            run: view.run,
            news,
            decoder,
            outbox: view.greeting,
            sent: 0,
            at: None,
            resizes: 0,
            end_sent: false,
            number: view.number,
            prefers_snapshots: view.prefers_snapshots,
            last_snapshot: None,
            is_delayed: false,
            has_more: false,
            typist: Typist::default(),
            actor: view.typist,
            last_input: Instant::now(),
            _over: over,
        }
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether it continues when its client can receive more.
    pub(super) fn wants_to_write(&self) -> bool {
        !self.outbox.is_empty() || self.has_more
    }

    /// When it has to be served again though nothing happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let escape = self.typist.is_waiting().then(|| self.last_input + ESCAPE_PAUSE);
        let snapshot = self.snapshot_due().filter(|_| self.is_delayed);
        escape.into_iter().chain(snapshot).min()
    }

    fn snapshot_due(&self) -> Option<Instant> {
        self.last_snapshot.map(|last| last + SNAPSHOT_PAUSE)
    }

    /// Reads from the client. `false` if it is gone.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(bytes) => self.decoder.feed(&buffer[..bytes]),
            Err(e) if is_passing(&e) => {}
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// Handles the frames that were received: input is queued, and has to be written to the terminal.
    pub(super) fn hear(&mut self, now: Instant) -> io::Result<Heard> {
        let mut heard = Heard::default();
        if self.typist.is_waiting() && now >= self.last_input + ESCAPE_PAUSE {
            let typed = self.typist.settle();
            self.note_typed(typed);
        }
        while let Some(frame) =
            self.decoder.next_from_view().map_err(|_| io::ErrorKind::InvalidData)?
        {
            match frame {
                FromView::Input(bytes) => {
                    let typed = self.typist.read(&bytes);
                    if typed.any {
                        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                        self.news.typed_bytes.fetch_add(count, Ordering::Relaxed);
                    }
                    self.note_typed(typed);
                    self.last_input = now;
                    let agreed = self.run.views().typed(self.number);
                    heard.resized |= agreed.is_some() && self.take_size(agreed);
                    // If the program does not read, the input is lost, as on any terminal.
                    heard.input |= self.run.type_in(bytes).is_ok();
                }
                FromView::Size(ViewSize { rows, columns }) => {
                    let agreed = self.run.views().set(self.number, Some(Size::new(rows, columns)));
                    heard.resized |= self.take_size(agreed);
                }
            }
        }
        Ok(heard)
    }

    fn note_typed(&self, typed: Typed) {
        self.run.note_typing(typed);
        if typed.any {
            self.run.note_typist(&self.actor);
            self.news.typed.notify_one();
        }
    }

    /// Gives the terminal the agreed size; whether that is another one.
    fn take_size(&self, agreed: Option<Size>) -> bool {
        let before = self.run.resizes();
        self.run.resize(agreed);
        self.news.resized.notify_one();
        self.run.resizes() != before
    }

    /// The client is gone. Whether the terminal got another size, that of the views that are left.
    pub(super) fn leave(&self) -> bool {
        let agreed = self.run.views().leave(self.number, self.run.progress().parsed);
        self.take_size(agreed)
    }

    /// Sends what there is, as far as the client receives it.
    pub(super) fn send(&mut self, now: Instant) -> io::Result<()> {
        self.has_more = false;
        loop {
            self.flush()?;
            if self.wants_to_write() || !self.next_frame(now) {
                return Ok(());
            }
        }
    }

    /// Prepares the next frame. `false` if there is nothing to send; the parser wakes the reader up for more.
    fn next_frame(&mut self, now: Instant) -> bool {
        if self.prepare_frame(now) {
            return true;
        }
        if self.is_delayed {
            // It is served when it is due.
            return false;
        }
        self.run.parser.await_for_view();
        self.prepare_frame(now)
    }

    fn prepare_frame(&mut self, now: Instant) -> bool {
        let progress = self.run.progress();
        let behind = self.at.map(|at| progress.parsed.get().saturating_sub(at));
        let bound = if self.prefers_snapshots { SNAPSHOT_LAG_BYTES } else { LAG_BYTES };
        let is_behind = behind.is_some_and(|behind| behind > bound);
        self.is_delayed =
            is_behind && self.prefers_snapshots && self.snapshot_due().is_some_and(|due| now < due);
        if self.is_delayed {
            return false;
        }
        let needs_snapshot = self.resizes != self.run.resizes() || behind.is_none() || is_behind;
        let frame = match self.at {
            Some(at) if !needs_snapshot => {
                let wanted = usize::try_from(progress.parsed.get().saturating_sub(at)).unwrap_or(0);
                if wanted == 0 {
                    return self.prepare_end();
                }
                let copied = self.run.log.copy(at, wanted.min(OUTPUT_BYTES));
                if copied.offset > at {
                    // The log dropped output that the view has not seen: start again.
                    self.snapshot(now)
                } else {
                    self.has_more = copied.bytes.len() >= OUTPUT_BYTES;
                    self.at = Some(at + copied.bytes.len() as u64);
                    ToView::Output { offset: at, bytes: copied.bytes }
                }
            }
            _ => self.snapshot(now),
        };
        frame.encode(&mut self.outbox);
        true
    }

    fn snapshot(&mut self, now: Instant) -> ToView {
        let screen = self.run.screen();
        let (offset, size) = (screen.offset(), screen.size());
        let bytes = screen.snapshot();
        self.resizes = self.run.resizes();
        drop(screen);
        self.at = Some(offset);
        self.last_snapshot = Some(now);
        let size = ViewSize { rows: size.rows, columns: size.columns };
        ToView::Snapshot { offset, size, bytes }
    }

    /// Reports the end of the process, once.
    fn prepare_end(&mut self) -> bool {
        let progress = self.run.progress();
        if !progress.is_over() || self.end_sent {
            return false;
        }
        self.end_sent = true;
        let (code, signal) = progress.exit.map_or((None, None), |exit| (exit.code, exit.signal));
        ToView::Ended { code, signal }.encode(&mut self.outbox);
        true
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.outbox.len() {
            match self.stream.write(&self.outbox[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(e) if is_passing(&e) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(())
    }
}

/// Whether the next attempt may succeed.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
