//! Sessions of clients of the older era: an unpredictable id, bound to the token that began it, and
//! the streams on which the client receives messages.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::Id;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Talk;
use super::inbox::Inbox;
use super::sse::Stream;
use crate::Told;

/// Streams kept for a client that disconnects.
const KEPT_STREAMS: usize = 64;

/// The number of the stream that a GET reads.
pub(super) const COMMON: u64 = 0;

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    /// The token that began it, and its server.
    pub(super) principal: String,
    pub(super) server: String,
    pub(super) talk: Arc<dyn Talk>,
    inner: Mutex<Inner>,
    used: AtomicU64,
    began: Instant,
}

struct Inner {
    /// The queues of messages about requests.
    requests: HashMap<Id, Inbox>,
    streams: BTreeMap<u64, Arc<Stream>>,
    next: u64,
}

impl Session {
    /// Begins a session and routes its messages.
    pub(super) fn begin(
        id: String,
        principal: String,
        server: String,
        talk: Arc<dyn Talk>,
        told: mpsc::Receiver<Told>,
    ) -> Arc<Self> {
        let streams = BTreeMap::from([(COMMON, Arc::<Stream>::default())]);
        let inner = Inner { requests: HashMap::new(), streams, next: COMMON + 1 };
        let session = Arc::new(Self {
            id,
            principal,
            server,
            talk,
            inner: Mutex::new(inner),
            used: AtomicU64::new(0),
            began: Instant::now(),
        });
        tokio::spawn(hand_out(Arc::downgrade(&session), told));
        session
    }

    /// A new id: 128 random bits.
    pub(super) fn new_id() -> std::io::Result<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The queue of messages about a request; `None` if one with this id is in flight.
    pub(super) fn listen(&self, id: &Id) -> Option<Inbox> {
        match self.lock().requests.entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => Some(place.insert(Inbox::default()).clone()),
        }
    }

    /// Removes a request's queue.
    pub(super) fn forget(&self, id: &Id) {
        self.lock().requests.remove(id);
    }

    /// Opens a stream and returns its number.
    pub(super) fn open(&self) -> (u64, Arc<Stream>) {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        let stream = Arc::<Stream>::default();
        inner.streams.insert(number, stream.clone());
        while inner.streams.len() > KEPT_STREAMS + 1 {
            let Some(oldest) = inner.streams.keys().find(|n| **n != COMMON).copied() else { break };
            inner.streams.remove(&oldest);
        }
        (number, stream)
    }

    /// A stream by its number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        self.lock().streams.get(&number).cloned()
    }

    /// Ends its streams and their readers.
    pub(super) fn close(&self) {
        for stream in self.lock().streams.values() {
            stream.end();
        }
    }

    pub(super) fn note_use(&self) {
        // Fine enough to order two sessions by their last use.
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.used.store(now, Ordering::Relaxed);
    }

    /// Whether one of its calls is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.lock().requests.is_empty()
    }

    /// How long it has been unused.
    pub(super) fn idle(&self) -> Duration {
        let used = Duration::from_nanos(self.used.load(Ordering::Relaxed));
        match self.is_busy() {
            false => self.began.elapsed().saturating_sub(used),
            true => Duration::ZERO,
        }
    }

    fn hand_out(&self, told: Told) {
        let inner = self.lock();
        let to = told.about.as_ref().and_then(|id| inner.requests.get(id));
        let told = match to {
            Some(to) => match to.put(told) {
                Ok(()) => return,
                Err(told) => told,
            },
            None => told,
        };
        if let Some(common) = inner.streams.get(&COMMON) {
            common.push(COMMON, &told.text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

async fn hand_out(session: std::sync::Weak<Session>, mut told: mpsc::Receiver<Told>) {
    while let Some(told) = told.recv().await {
        let Some(session) = session.upgrade() else { return };
        session.hand_out(told);
    }
}
