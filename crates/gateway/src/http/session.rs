//! Sessions of clients of the older era: an unpredictable id, bound to the token that began it, and
//! the streams on which the client receives messages.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use patterm_wire::Id;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::McpPeer;
use super::sse::EventStream;
use crate::Notification;
use crate::relay::OwnIds;

/// Streams kept for a client that disconnects.
const REPLAY_STREAMS: usize = 64;

/// The number of the stream that a GET reads.
pub(super) const SESSION_STREAM: u64 = 0;

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    /// The token that began it, and its server.
    pub(super) principal: String,
    pub(super) server: String,
    pub(super) peer: Arc<dyn McpPeer>,
    inner: Mutex<Inner>,
    last_used_nanos: AtomicU64,
    started: Instant,
    /// Its revision has batches.
    batches: AtomicBool,
    /// It has ended.
    closed: AtomicBool,
}

struct Inner {
    /// The queues of messages about requests; without one, they go to the session's stream.
    requests: HashMap<Id, Option<NotificationQueue>, OwnIds>,
    streams: BTreeMap<u64, Arc<EventStream>>,
    next: u64,
}

impl Session {
    /// Begins a session and routes its messages.
    pub(super) fn begin(
        id: String,
        principal: String,
        server: String,
        peer: Arc<dyn McpPeer>,
        notification: mpsc::Receiver<Notification>,
    ) -> Arc<Self> {
        let streams = BTreeMap::from([(SESSION_STREAM, Arc::<EventStream>::default())]);
        let inner = Inner { requests: HashMap::default(), streams, next: SESSION_STREAM + 1 };
        let session = Arc::new(Self {
            id,
            principal,
            server,
            peer,
            inner: Mutex::new(inner),
            last_used_nanos: AtomicU64::new(0),
            started: Instant::now(),
            batches: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        tokio::spawn(route(Arc::downgrade(&session), notification));
        session
    }

    /// A new id: 128 random bits.
    pub(super) fn new_id() -> std::io::Result<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The queue of messages about a request; `None` if one with this id is in flight.
    pub(super) fn register(&self, id: &Id) -> Option<NotificationQueue> {
        match self.lock().requests.entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => place.insert(Some(NotificationQueue::default())).clone(),
        }
    }

    /// The same without a queue; returns whether the id is free.
    pub(super) fn register_unstreamed(&self, id: &Id) -> bool {
        match self.lock().requests.entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(None);
                true
            }
        }
    }

    /// Whether its revision has batches.
    pub(super) fn has_batches(&self) -> bool {
        self.batches.load(Ordering::Relaxed)
    }

    /// Its revision has batches.
    pub(super) fn enable_batches(&self) {
        self.batches.store(true, Ordering::Relaxed);
    }

    /// Removes a request's queue.
    pub(super) fn unregister(&self, id: &Id) {
        self.lock().requests.remove(id);
    }

    /// Opens a stream and returns its number.
    pub(super) fn open(&self) -> (u64, Arc<EventStream>) {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        let stream = Arc::<EventStream>::default();
        inner.streams.insert(number, stream.clone());
        while inner.streams.len() > REPLAY_STREAMS + 1 {
            let Some(oldest) = inner.streams.keys().find(|n| **n != SESSION_STREAM).copied() else {
                break;
            };
            inner.streams.remove(&oldest);
        }
        (number, stream)
    }

    /// A stream by its number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        self.lock().streams.get(&number).cloned()
    }

    /// Ends its streams and their readers.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for stream in self.lock().streams.values() {
            stream.end();
        }
    }

    pub(super) fn touch(&self) {
        self.touch_at(Instant::now().into_std());
    }

    pub(super) fn touch_at(&self, now: std::time::Instant) {
        // Fine enough to order two sessions by their last use.
        let used = now.saturating_duration_since(self.started.into_std());
        let used = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        self.last_used_nanos.store(used, Ordering::Relaxed);
    }

    /// Whether one of its calls is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.lock().requests.is_empty()
    }

    /// Whether it has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// How long it has been unused.
    pub(super) fn idle(&self) -> Duration {
        let used = Duration::from_nanos(self.last_used_nanos.load(Ordering::Relaxed));
        match self.is_busy() {
            false => self.started.elapsed().saturating_sub(used),
            true => Duration::ZERO,
        }
    }

    fn route(&self, notification: Notification) {
        let inner = self.lock();
        let to = notification.request_id.as_ref().and_then(|id| inner.requests.get(id)?.as_ref());
        let notification = match to {
            Some(to) => match to.put(notification) {
                Ok(()) => return,
                Err(notification) => notification,
            },
            None => notification,
        };
        if let Some(stream) = inner.streams.get(&SESSION_STREAM) {
            stream.push(SESSION_STREAM, &notification.text);
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

async fn route(session: std::sync::Weak<Session>, mut receiver: mpsc::Receiver<Notification>) {
    while let Some(notification) = receiver.recv().await {
        let Some(session) = session.upgrade() else { return };
        session.route(notification);
    }
}

/// Messages queued per request.
const QUEUE_LENGTH: usize = 64;

/// The queue of messages about one request. Most requests get none, so an empty queue is
/// cheap.
#[derive(Debug, Clone, Default)]
pub(super) struct NotificationQueue(Arc<Mutex<QueueState>>);

#[derive(Debug, Default)]
struct QueueState {
    queued: VecDeque<Notification>,
    reader: Option<Waker>,
}

impl NotificationQueue {
    /// Adds a message; returns it if the queue is full.
    pub(super) fn put(&self, notification: Notification) -> Result<(), Notification> {
        let mut state = self.lock();
        if state.queued.len() >= QUEUE_LENGTH {
            return Err(notification);
        }
        state.queued.push_back(notification);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    async fn next(&self) -> Notification {
        poll_fn(|context| {
            let mut state = self.lock();
            if let Some(notification) = state.queued.pop_front() {
                return Poll::Ready(notification);
            }
            match &mut state.reader {
                Some(reader) => reader.clone_from(context.waker()),
                reader => *reader = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages that a client gets before the response.
#[derive(Debug)]
pub(super) enum Notifications {
    /// About one request of a session.
    OfRequest(NotificationQueue),
    /// On a connection that only this request uses.
    OfClient(mpsc::Receiver<Notification>),
}

impl Notifications {
    /// The next message; `None` if no more can follow.
    pub(super) async fn next(&mut self) -> Option<Notification> {
        match self {
            Self::OfRequest(queue) => Some(queue.next().await),
            Self::OfClient(receiver) => receiver.recv().await,
        }
    }
}
