//! The messages about one request while it is pending. Most requests get none, so an empty queue
//! allocates nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::mpsc;

use crate::Told;

/// Messages queued per request.
const TOLD: usize = 64;

/// The queue of messages about one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    told: VecDeque<Told>,
    reader: Option<Waker>,
}

impl Inbox {
    /// Adds a message; returns it if the queue is full.
    pub(super) fn put(&self, told: Told) -> Result<(), Told> {
        let mut held = self.lock();
        if held.told.len() >= TOLD {
            return Err(told);
        }
        held.told.push_back(told);
        let reader = held.reader.take();
        drop(held);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    async fn next(&self) -> Told {
        poll_fn(|context| {
            let mut held = self.lock();
            if let Some(told) = held.told.pop_front() {
                return Poll::Ready(told);
            }
            match &mut held.reader {
                Some(reader) => reader.clone_from(context.waker()),
                reader => *reader = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages that a client gets before the response.
#[derive(Debug)]
pub(super) enum Heard {
    /// About one request of a session.
    OfRequest(Inbox),
    /// On a connection that only this request uses.
    OfLine(mpsc::Receiver<Told>),
}

impl Heard {
    /// The next message; `None` if no more can follow.
    pub(super) async fn next(&mut self) -> Option<Told> {
        match self {
            Self::OfRequest(inbox) => Some(inbox.next().await),
            Self::OfLine(told) => told.recv().await,
        }
    }
}
