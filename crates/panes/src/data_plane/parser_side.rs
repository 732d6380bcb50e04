//! The part of a run that belongs to the parser.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use patterm_keeper::log;

use patterm_store::sync::lock;

use super::ending::Ending;
use super::notifications::Notifications;
use super::turns::Queued;
use crate::offset::{AtomicOffset, Offset};

/// Memory of parsed output is released in steps of this size: a system call for less is not worth it.
const RELEASE_BYTES: u64 = 64 << 10;

/// How far the output of a run is parsed.
///
/// Whoever has the turn moves `parsed`: the parser's thread, or the reader's for the echo of a key (before the first
/// turn, the thread that rebuilds the screen). It does so with `Release` after the screen has the output; other threads
/// load it with `Acquire`, so that a thread that sees an offset also sees the screen that belongs to it.
#[derive(Debug)]
pub(super) struct ParserSide {
    parsed: AtomicOffset,
    /// Held while output is parsed, so that two threads never parse the same output.
    turn: Mutex<()>,
    /// A view has everything that is parsed and wants to be told of more. The reader sets it before it looks at
    /// `parsed` for the last time, and the parser clears it after it has moved `parsed`, both with a swap. So either the
    /// parser sees the flag, or the reader sees the output.
    awaited_by_view: AtomicBool,
    /// Memory of the log before this offset was released. The reader and the parser both release and only ever move
    /// it forward. Releasing a range twice is harmless, so `Relaxed` is enough.
    released: AtomicOffset,
    /// Whether the run waits for a turn of the parser.
    pub(super) queued: Queued,
    /// The end of the run, until the parser has reached it.
    pub(super) ending: Ending,
    /// Bells and notifications.
    pub(super) notifications: Notifications,
}

impl ParserSide {
    pub(super) fn new(parsed: Offset) -> Self {
        Self {
            parsed: AtomicOffset::new(parsed),
            turn: Mutex::default(),
            awaited_by_view: AtomicBool::new(false),
            released: AtomicOffset::new(parsed),
            queued: Queued::default(),
            ending: Ending::default(),
            notifications: Notifications::default(),
        }
    }

    /// Waits for the turn.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// The turn, unless another thread has it.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Called by the reader for a view, which then looks for more output once again.
    pub(super) fn await_for_view(&self) {
        self.awaited_by_view.swap(true, Ordering::AcqRel);
    }

    /// Called by the parser: `true` if a view wants to be told.
    pub(super) fn take_awaited_by_view(&self) -> bool {
        self.awaited_by_view.swap(false, Ordering::AcqRel)
    }

    /// The output before this offset is on the screen.
    pub(super) fn parsed(&self) -> Offset {
        self.parsed.load(Ordering::Acquire)
    }

    /// Called by the parser, and once the screen is rebuilt.
    pub(super) fn set_parsed(&self, parsed: Offset) {
        self.parsed.store(parsed, Ordering::Release);
    }

    /// The number of bytes that are in the log but not parsed.
    pub(super) fn lag(&self, log: &log::Reader) -> u64 {
        Offset::new(log.end()).bytes_since(self.parsed())
    }

    /// Releases the memory of parsed output, if there is enough of it.
    pub(super) fn release_parsed(&self, log: &log::Reader) {
        let (parsed, released) = (self.parsed(), self.released.load(Ordering::Relaxed));
        if parsed >= released.plus(RELEASE_BYTES) {
            log.release(released.get(), parsed.get());
            self.released.advance(parsed, Ordering::Relaxed);
        }
    }
}
