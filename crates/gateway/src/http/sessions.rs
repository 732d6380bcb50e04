//! Sessions of clients of the older era: an id that nobody guesses, bound to the token that began it,
//! and the streams on which the client is told things.

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

/// Streams of answers that are kept for a client that broke off.
const KEPT_STREAMS: usize = 64;

/// The number of the stream that is asked for by GET.
pub(super) const COMMON: u64 = 0;

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    /// The token that began it, and the server it is with.
    pub(super) principal: String,
    pub(super) server: String,
    pub(super) talk: Arc<dyn Talk>,
    inner: Mutex<Inner>,
    used: AtomicU64,
    began: Instant,
}

struct Inner {
    /// Who is told what belongs to a request.
    requests: HashMap<Id, Inbox>,
    streams: BTreeMap<u64, Arc<Stream>>,
    next: u64,
}

impl Session {
    /// Begins; what its client is told goes where it belongs.
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

    /// An id that nobody guesses: 128 random bits.
    pub(super) fn new_id() -> std::io::Result<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// What is told of a request, from now on; `None` where one of this id is in flight.
    pub(super) fn listen(&self, id: &Id) -> Option<Inbox> {
        match self.lock().requests.entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => Some(place.insert(Inbox::default()).clone()),
        }
    }

    /// Nobody listens to what is told of a request any more.
    pub(super) fn forget(&self, id: &Id) {
        self.lock().requests.remove(id);
    }

    /// A new stream, with its number.
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

    /// Ends its streams: whoever reads one hears no more.
    pub(super) fn close(&self) {
        for stream in self.lock().streams.values() {
            stream.end();
        }
    }

    pub(super) fn note_use(&self) {
        // Fine enough to tell which of two sessions was used last.
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.used.store(now, Ordering::Relaxed);
    }

    /// Whether a call of it is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.lock().requests.is_empty()
    }

    /// How long nobody used it.
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
