//! The part of a run that belongs to the reader.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use patterm_store::sync::lock;

use super::trouble::Trouble;
use crate::offset::{AtomicOffset, Offset};

/// State that the reader sets. The parser clears the two flags; other threads only read.
///
/// `paused` and `awaits_parse` ask the parser for a wake-up. The reader sets each of them before it queues the run
/// for the parser, and the parser clears it with a swap after it has parsed. So a request is never lost: either the
/// parser's current turn sees the flag, or the run gets another turn. Both use acquire and release, so that the
/// parser sees the log end that the reader wrote before the flag.
#[derive(Debug, Default)]
pub(super) struct ReaderSide {
    /// The reader's key for this pane; 0 before it was added. Only the reader's thread touches it: `Relaxed`.
    token: AtomicU64,
    /// The offset in the process table that the output has not reached. The control plane sets it before the run is
    /// added, then only the reader's thread touches it: `Relaxed`.
    mark: AtomicOffset,
    /// The reader does not read this pane until the parser has caught up.
    paused: AtomicBool,
    /// The reader holds back other panes until the echo of a key is parsed.
    awaits_parse: AtomicBool,
    /// Why output cannot be stored normally. The reader writes it, the control plane reads it.
    trouble: Mutex<Option<Trouble>>,
}

impl ReaderSide {
    pub(super) fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    pub(super) fn set_token(&self, token: u64) {
        self.token.store(token, Ordering::Relaxed);
    }

    pub(super) fn mark(&self) -> Offset {
        self.mark.load(Ordering::Relaxed)
    }

    pub(super) fn set_mark(&self, mark: Offset) {
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Called by the reader: it stops reading until [`Self::resume`] returns `true`.
    pub(super) fn pause(&self) {
        self.paused.store(true, Ordering::Release);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Called by the parser: lets the reader continue. `true` if the reader was paused and must be told.
    pub(super) fn resume(&self) -> bool {
        self.paused.swap(false, Ordering::AcqRel)
    }

    /// Called by the reader: it wants a wake-up once the output is parsed.
    pub(super) fn await_parse(&self) {
        self.awaits_parse.store(true, Ordering::Release);
    }

    /// Called by the parser: `true` if the reader asked for a wake-up.
    pub(super) fn take_awaits_parse(&self) -> bool {
        self.awaits_parse.swap(false, Ordering::AcqRel)
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        lock(&self.trouble).clone()
    }

    /// Called by the reader; `true` if this is a change.
    pub(super) fn set_trouble(&self, trouble: Option<Trouble>) -> bool {
        std::mem::replace(&mut *lock(&self.trouble), trouble.clone()) != trouble
    }
}
