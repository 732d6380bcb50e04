//! What waits to be written to a server: bounded, so that one that does not read holds up nobody's
//! memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// One line, and whether it must be told that it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) line: String,
    pub(crate) is_told: bool,
}

#[derive(Debug, Default)]
struct Held {
    entries: VecDeque<Entry>,
    bytes: usize,
    closed: bool,
}

/// A queue with one reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    held: Mutex<Held>,
    bell: Notify,
}

impl Queue {
    pub(crate) fn push(&self, entry: Entry) {
        let mut held = self.lock();
        if held.closed {
            return;
        }
        held.bytes += entry.line.len();
        held.entries.push_back(entry);
        drop(held);
        self.bell.notify_one();
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        let mut held = self.lock();
        held.closed = true;
        held.entries.clear();
        held.bytes = 0;
        drop(held);
        self.bell.notify_one();
    }

    /// All that waits, once something does; `None` when it is closed. What was taken counts as
    /// waiting until it is [`Self::written`].
    pub(crate) async fn take(&self) -> Option<Vec<Entry>> {
        loop {
            {
                let mut held = self.lock();
                if held.closed {
                    return None;
                }
                if !held.entries.is_empty() {
                    return Some(held.entries.drain(..).collect());
                }
            }
            self.bell.notified().await;
        }
    }

    /// So many bytes are written.
    pub(crate) fn written(&self, bytes: usize) {
        let mut held = self.lock();
        held.bytes = held.bytes.saturating_sub(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
