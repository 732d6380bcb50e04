//! The bytes to be written to a server. The queue is bounded by its users, so that a server that
//! does not read cannot exhaust memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use patterm_wire::Framing;
use tokio::sync::Notify;

/// Lines to be written together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The lines with their line ends.
    pub(crate) bytes: Vec<u8>,
    /// One of the lines must be reported once it is written.
    pub(crate) is_told: bool,
}

/// Capacity that a batch keeps for reuse.
const KEPT_BYTES: usize = 64 << 10;

impl Batch {
    /// Empties it for reuse.
    pub(crate) fn clear(&mut self) {
        self.is_told = false;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

#[derive(Debug, Default)]
struct Held {
    next: Batch,
    /// Bytes taken but not written yet.
    taken: usize,
    closed: bool,
}

/// A queue with one reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    held: Mutex<Held>,
    bell: Notify,
}

impl Queue {
    /// Adds a message as one line.
    pub(crate) fn push(&self, json: &str, is_told: bool) {
        let mut held = self.lock();
        if held.closed {
            return;
        }
        let first = held.next.bytes.is_empty();
        Framing::Newline.encode(json.as_bytes(), &mut held.next.bytes);
        held.next.is_told |= is_told;
        drop(held);
        // The reader takes everything at once and was woken by the first message.
        if first {
            self.bell.notify_one();
        }
    }

    /// Bytes that are waiting to be written.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.lock();
        held.next.bytes.len() + held.taken
    }

    /// Drops everything; nothing more is written.
    pub(crate) fn close(&self) {
        *self.lock() = Held { closed: true, ..Held::default() };
        self.bell.notify_one();
    }

    /// Swaps everything that waits into an empty batch, waiting for the first message; `false` when
    /// closed. What was taken counts as waiting until [`Self::written`] is called.
    pub(crate) async fn take(&self, batch: &mut Batch) -> bool {
        loop {
            {
                let mut held = self.lock();
                if held.closed {
                    return false;
                }
                if !held.next.bytes.is_empty() {
                    std::mem::swap(&mut held.next, batch);
                    held.taken = batch.bytes.len();
                    return true;
                }
            }
            self.bell.notified().await;
        }
    }

    /// The last batch was written.
    pub(crate) fn written(&self) {
        self.lock().taken = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
