//! What is told of one request while it is answered. Most requests hear nothing, so that an inbox
//! costs nothing until something is put into it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::mpsc;

use crate::Told;

/// What a request may be behind with what is told of it.
const TOLD: usize = 64;

/// Where what is told of a request is put.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    told: VecDeque<Told>,
    reader: Option<Waker>,
}

impl Inbox {
    /// Puts something in; gives it back where there is no room.
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

/// What a client is told before its answer.
#[derive(Debug)]
pub(super) enum Heard {
    /// Of a request of a session.
    OfRequest(Inbox),
    /// On a line that only this request has.
    OfLine(mpsc::Receiver<Told>),
}

impl Heard {
    /// The next of it; `None` where nothing more can come.
    pub(super) async fn next(&mut self) -> Option<Told> {
        match self {
            Self::OfRequest(inbox) => Some(inbox.next().await),
            Self::OfLine(told) => told.recv().await,
        }
    }
}
