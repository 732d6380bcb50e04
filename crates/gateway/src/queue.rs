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
    pub(crate) reports_write: bool,
}

/// Capacity that a batch keeps for reuse.
const KEPT_BYTES: usize = 64 << 10;

impl Batch {
    /// Empties it for reuse.
    pub(crate) fn clear(&mut self) {
        self.reports_write = false;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

#[derive(Debug, Default)]
struct QueueState {
    next: Batch,
    /// Bytes taken but not written yet.
    taken: usize,
    closed: bool,
}

/// A queue with one reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    wake: Notify,
}

impl Queue {
    /// Adds a message as one line.
    pub(crate) fn push(&self, json: &str, reports_write: bool) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let first = state.next.bytes.is_empty();
        Framing::Newline.encode(json.as_bytes(), &mut state.next.bytes);
        state.next.reports_write |= reports_write;
        drop(state);
        // The reader takes everything at once and was woken by the first message.
        if first {
            self.wake.notify_one();
        }
    }

    /// Adds a message in parts as one line, unless more than `most` bytes would wait.
    pub(crate) fn push_parts(&self, parts: &[&[u8]], most: usize) -> bool {
        let mut state = self.lock();
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if state.closed || state.next.bytes.len() + state.taken + length > most {
            return false;
        }
        let first = state.next.bytes.is_empty();
        for part in parts {
            patterm_wire::line::append(part, &mut state.next.bytes);
        }
        state.next.bytes.push(b'\n');
        drop(state);
        if first {
            self.wake.notify_one();
        }
        true
    }

    /// Bytes that are waiting to be written.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.lock();
        state.next.bytes.len() + state.taken
    }

    /// Drops everything; nothing more is written.
    pub(crate) fn close(&self) {
        *self.lock() = QueueState { closed: true, ..QueueState::default() };
        self.wake.notify_one();
    }

    /// Swaps everything that waits into an empty batch, waiting for the first message; `false` when
    /// closed. What was taken counts as waiting until [`Self::written`] is called.
    pub(crate) async fn take(&self, batch: &mut Batch) -> bool {
        loop {
            {
                let mut state = self.lock();
                if state.closed {
                    return false;
                }
                if !state.next.bytes.is_empty() {
                    std::mem::swap(&mut state.next, batch);
                    state.taken = batch.bytes.len();
                    return true;
                }
            }
            self.wake.notified().await;
        }
    }

    /// The last batch was written.
    pub(crate) fn written(&self) {
        self.lock().taken = 0;
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
