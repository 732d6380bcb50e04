//! What waits to be written to a server: bounded, so that one that does not read holds up nobody's
//! memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use patterm_wire::Framing;
use tokio::sync::Notify;

/// Lines that are to be written together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The lines, each with its end.
    pub(crate) bytes: Vec<u8>,
    /// One of them must be told that it is written.
    pub(crate) is_told: bool,
}

/// What a batch may keep of its room for the next.
const KEPT_BYTES: usize = 64 << 10;

impl Batch {
    /// Makes it ready for the next.
    pub(crate) fn clear(&mut self) {
        self.is_told = false;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

#[derive(Debug, Default)]
struct Held {
    next: Batch,
    /// Bytes that were taken and are not written yet.
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
    /// Adds a message, which becomes one line.
    pub(crate) fn push(&self, json: &str, is_told: bool) {
        let mut held = self.lock();
        if held.closed {
            return;
        }
        let first = held.next.bytes.is_empty();
        Framing::Newline.encode(json.as_bytes(), &mut held.next.bytes);
        held.next.is_told |= is_told;
        drop(held);
        // The reader takes all at once, and was called by the first.
        if first {
            self.bell.notify_one();
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.lock();
        held.next.bytes.len() + held.taken
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        *self.lock() = Held { closed: true, ..Held::default() };
        self.bell.notify_one();
    }

    /// Takes all that waits into an empty batch, once something does; `false` when it is closed. What
    /// was taken counts as waiting until it is [`Self::written`].
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

    /// What was taken is written.
    pub(crate) fn written(&self) {
        self.lock().taken = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
