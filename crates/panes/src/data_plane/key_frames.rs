//! Key frames of screens: where they are taken, and the thread that stores them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use patterm_keeper::log::{KeyFrame, Reader};

use super::run::ProcessRun;
use crate::offset::{AtomicOffset, Offset};

/// Output between two frames: what a later server parses at most before a screen is current. That takes about 10 ms.
const EVERY_BYTES: u64 = 1 << 20;

/// The same if the terminal got another size in between. What is replayed from then on needs no rows of the history.
const EVERY_RESIZE_BYTES: u64 = 64 << 10;

/// Output after which a frame is tried again that could not be taken.
const AGAIN_BYTES: u64 = 128 << 10;

/// Frames that wait for the disk. If it is slower than the output, the others are left out.
const WAITING: usize = 64;

/// The part of a run that belongs to key frames. The parser's thread takes them; which output they are of needs no order
/// to other memory, so `Relaxed`.
#[derive(Debug)]
pub(super) struct FrameSide {
    last: AtomicOffset,
    /// The terminal got another size after that.
    resized: AtomicBool,
    /// The next one is not tried before this offset.
    not_before: AtomicOffset,
}

impl FrameSide {
    pub(super) fn new(begun: Offset) -> Self {
        Self {
            last: AtomicOffset::new(begun),
            resized: AtomicBool::new(false),
            not_before: AtomicOffset::default(),
        }
    }

    /// The last one was taken here.
    pub(super) fn set_last(&self, offset: Offset) {
        self.last.store(offset, Ordering::Relaxed);
        self.resized.store(false, Ordering::Relaxed);
    }

    /// None can be taken here.
    fn postpone(&self, parsed: Offset) {
        self.not_before.store(parsed.plus(AGAIN_BYTES), Ordering::Relaxed);
    }

    pub(super) fn note_resize(&self) {
        self.resized.store(true, Ordering::Relaxed);
    }

    fn is_due(&self, parsed: Offset) -> bool {
        let printed = parsed.bytes_since(self.last.load(Ordering::Relaxed));
        let is_due = printed >= EVERY_BYTES
            || (printed >= EVERY_RESIZE_BYTES && self.resized.load(Ordering::Relaxed));
        is_due && parsed >= self.not_before.load(Ordering::Relaxed)
    }
}

/// Gives frames to a thread of its own: neither output nor its parser waits for the disk.
#[derive(Debug)]
pub(super) struct FrameWriter {
    waiting: SyncSender<(Reader, KeyFrame)>,
}

impl FrameWriter {
    pub(super) fn start() -> io::Result<Self> {
        let (waiting, frames) = sync_channel(WAITING);
        super::thread("patterm-frames", move || store(&frames))?;
        Ok(Self { waiting })
    }

    /// Called by the parser between two turns of a run: takes a frame if one is due.
    pub(super) fn look_at(&self, run: &Arc<ProcessRun>) {
        let parsed = run.parser.parsed();
        if !run.is_rebuilt() || !run.frames.is_due(parsed) {
            return;
        }
        match run.key_frame() {
            Some(frame) => {
                run.frames.set_last(Offset::new(frame.offset));
                let _ = self.waiting.try_send((run.log.clone(), frame));
            }
            // In the middle of a sequence; or the screen is too large.
            None => run.frames.postpone(parsed),
        }
    }
}

fn store(frames: &Receiver<(Reader, KeyFrame)>) {
    while let Ok((log, frame)) = frames.recv() {
        if let Err(error) = log.put_key_frame(&frame) {
            // The next server replays more.
            tracing::debug!(%error, "cannot store a key frame");
        }
    }
}
