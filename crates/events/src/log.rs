//! The log as the parts of a server use it: a handle that can be cloned, and a thread that syncs.

use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use patterm_store::clock::Clock;
use patterm_store::sync::lock;
use patterm_wire::digest::Digest;
use patterm_wire::events::{
    Actor, EventClass, EventPage, EventQuery, EventRecord, Fact, LogVerdict, parse_time,
};
use tokio::sync::watch;

use crate::acting::current_actor;
use crate::digest::{DigestSize, Digester, Window};
use crate::error::EventError;
use crate::known_state::KnownState;
use crate::new_event::{About, NewEvent};
use crate::reading::{self, EventSource, MOST_EVENTS, Texts};
use crate::store::Store;
use crate::syncing::SyncSignal;
use crate::verify::{self, Snapshot};

/// Events before a digest that are read to know how things were at its beginning: days of a busy project.
const BACK_EVENTS: u64 = 20_000;

/// How often a check is repeated because events were dropped under it.
const CHECKS: usize = 3;

/// The log of a project's events. Clones write into the same log.
#[derive(Debug, Clone, Default)]
pub struct EventLog(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    store: Mutex<Store>,
    signal: Arc<SyncSignal>,
    /// The number of the last event that can be read.
    last: watch::Sender<u64>,
    can_write: bool,
}

/// Where a digest begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestStart {
    /// With the first event.
    Beginning,
    /// With the event of this number.
    Seq(u64),
    /// At this time, in milliseconds since 1970.
    Time(u64),
    /// Where an earlier digest ended: at this event and time.
    Continued(u64, u64),
}

impl EventLog {
    /// Opens the log in a folder. `bytes` is the size of its files.
    pub fn open(folder: &Path, bytes: u64, clock: Clock) -> Result<Self, EventError> {
        let store = Store::open(folder, bytes, clock)?;
        let signal = Arc::new(SyncSignal::default());
        let last = watch::Sender::new(store.written);
        let inner = Arc::new(Inner {
            store: Mutex::new(store),
            signal: signal.clone(),
            last,
            can_write: true,
        });
        let syncing = Arc::downgrade(&inner);
        std::thread::Builder::new()
            .name("events".into())
            .spawn(move || sync_until_closed(&signal, &syncing))
            .map_err(EventError::Thread)?;
        inner.signal.notify();
        Ok(Self(Some(inner)))
    }

    /// Opens a log to read it, without changing anything: what is recorded is discarded. Empty if there is none.
    pub fn open_to_read(folder: &Path, clock: Clock) -> Result<Self, EventError> {
        if folder.symlink_metadata().is_err() {
            return Ok(Self::none());
        }
        let store = Store::open_to_read(folder, clock)?;
        let last = watch::Sender::new(store.written);
        let (store, signal) = (Mutex::new(store), Arc::default());
        Ok(Self(Some(Arc::new(Inner { store, signal, last, can_write: false }))))
    }

    /// A log that forgets everything, for parts that are used without a server.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Records what happened, caused by whoever the current task acts for. Once this returns, the event survives the
    /// death of this process; approvals are on disk by then.
    pub fn record(&self, about: About, fact: Fact) {
        self.record_by(current_actor(), about, fact);
    }

    /// Does the same for a known actor.
    pub fn record_by(&self, actor: Actor, about: About, fact: Fact) {
        self.note(NewEvent { fact, about, actor, recovered: false });
    }

    /// Records what an earlier server did not record before it died.
    pub fn record_recovered(&self, about: About, fact: Fact) {
        self.note(NewEvent { fact, about, actor: Actor::System, recovered: true });
    }

    /// What happened has happened, so a failure is reported in the log only.
    fn note(&self, event: NewEvent) {
        if let Err(error) = self.append(event) {
            tracing::error!(%error, "cannot record an event");
        }
    }

    /// Appends an event; returns its number.
    pub fn append(&self, event: NewEvent) -> Result<u64, EventError> {
        let Some(inner) = self.0.as_ref().filter(|inner| inner.can_write) else { return Ok(0) };
        let at_once = event.is_approval();
        let mut store = lock(&inner.store);
        let seq = store.append(event)?;
        let last = store.written;
        let must_sync = at_once || store.must_sync();
        drop(store);
        inner.last.send_if_modified(|known| std::mem::replace(known, last) != last);
        if must_sync {
            inner.sync();
        } else {
            inner.signal.notify();
        }
        Ok(seq)
    }

    /// The state that the events so far describe.
    #[must_use]
    pub fn known_state(&self) -> KnownState {
        self.0.as_ref().map(|inner| lock(&inner.store).known_state.clone()).unwrap_or_default()
    }

    /// The number of the last event that can be read, as it changes.
    #[must_use]
    pub fn last(&self) -> watch::Receiver<u64> {
        match &self.0 {
            Some(inner) => inner.last.subscribe(),
            None => watch::Sender::new(0).subscribe(),
        }
    }

    /// Why events cannot be written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.as_ref().and_then(|inner| lock(&inner.store).trouble.clone())
    }

    /// Reads events. It may read many files, so it needs a thread that may block, unless the query begins at an event
    /// that is still in memory.
    pub fn read(&self, query: &EventQuery) -> Result<EventPage, EventError> {
        let EventPage { events, next, dropped } = self.lines(query)?;
        let events =
            events.iter().filter_map(|text| serde_json::from_str::<EventRecord>(text).ok());
        Ok(EventPage { events: events.collect(), next, dropped })
    }

    /// Reads events as they are stored.
    pub fn lines(&self, query: &EventQuery) -> Result<Texts, EventError> {
        let Some(inner) = &self.0 else { return Ok(Texts { next: 1, ..Texts::default() }) };
        let Some(since) = query.since else { return inner.newest(query) };
        let (source, last) = inner.source(since);
        if since > last {
            return Ok(Texts { next: last + 1, ..Texts::default() });
        }
        reading::read(source, query, since, last)
    }

    /// What happened since a moment. It may read many files, so it needs a thread that may block.
    pub fn digest(&self, start: DigestStart, size: DigestSize) -> Result<Digest, EventError> {
        let Some(inner) = &self.0 else { return Ok(Digest { next: 1, ..Digest::default() }) };
        let (known_state, last, until_ms) = inner.now();
        let (since, from_ms) = match start {
            DigestStart::Beginning => (1, None),
            DigestStart::Seq(since) => (since, None),
            DigestStart::Continued(next, at) if next <= last + 1 => (next, Some(at)),
            // The numbers of a log that was removed say nothing about this one.
            DigestStart::Time(at) | DigestStart::Continued(_, at) => {
                (self.first_since(at)?, Some(at))
            }
        };
        let since = since.clamp(1, last + 1);
        let from_ms = from_ms.map(|from| from.min(until_ms));
        let mut digester = Digester::new(Window { since, from_ms, last, until_ms }, &known_state);
        let back = since.saturating_sub(BACK_EVENTS).max(1);
        let (source, _) = inner.source(back);
        reading::visit(source, back, last, |event, class| {
            // Calls are the most frequent, and no digest tells of them.
            match serde_json::from_str::<EventRecord>(&event.json) {
                Ok(record) if class != Some(EventClass::Calls) => digester.feed(&record),
                _ => digester.skip(event.seq),
            }
        })?;
        let kept = lock(&inner.store).kept();
        Ok(digester.finish(&known_state, kept, size))
    }

    /// The number of the event that a digest would end before now, and the time at which it would end.
    #[must_use]
    pub fn now(&self) -> (u64, u64) {
        let Some(inner) = &self.0 else { return (1, 0) };
        let store = lock(&inner.store);
        (store.written + 1, store.now_ms())
    }

    /// The number of the first event at or after a time, by halving.
    fn first_since(&self, wall_ms: u64) -> Result<u64, EventError> {
        let (mut low, mut high) = (1, *self.last().borrow() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let query = EventQuery { since: Some(middle), limit: Some(1), ..EventQuery::default() };
            let event = self.read(&query)?.events.pop();
            match event {
                Some(event) if parse_time(&event.time).is_some_and(|at| at < wall_ms) => {
                    low = event.seq + 1;
                }
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The last event before a time that is wanted. Calls are left out. It may read many files, so it needs a thread that
    /// may block.
    pub fn last_before(
        &self,
        wall_ms: u64,
        wanted: impl Fn(&EventRecord) -> bool,
    ) -> Result<Option<EventRecord>, EventError> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let mut end = self.first_since(wall_ms)?.saturating_sub(1);
        let starts = reading::starts(Some(MOST_EVENTS), end).filter(|since| *since <= end);
        for since in starts.collect::<Vec<_>>() {
            let mut found = None;
            inner.visit(since, end, |event| {
                if wanted(&event) {
                    found = Some(event);
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
            end = since.saturating_sub(1);
        }
        Ok(None)
    }

    /// The first event after a time that is wanted, in the same way.
    pub fn first_after(
        &self,
        wall_ms: u64,
        wanted: impl Fn(&EventRecord) -> bool,
    ) -> Result<Option<EventRecord>, EventError> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let last = *self.last().borrow();
        let mut since = self.first_since(wall_ms.saturating_add(1))?;
        let mut count = MOST_EVENTS as u64;
        while since <= last {
            let end = since.saturating_add(count - 1).min(last);
            let mut found = None;
            inner.visit(since, end, |event| {
                if found.is_none() && wanted(&event) {
                    found = Some(event);
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
            (since, count) = (end + 1, count.saturating_mul(reading::FURTHER));
        }
        Ok(None)
    }

    /// Checks the whole log.
    pub fn verify(&self) -> Result<LogVerdict, EventError> {
        let Some(inner) = &self.0 else { return Ok(LogVerdict::default()) };
        let mut verdict = LogVerdict::default();
        for _ in 0..CHECKS {
            let snapshot = inner.snapshot();
            verdict = verify::verify(&snapshot)?;
            if inner.snapshot().dropped_through == snapshot.dropped_through {
                break;
            }
        }
        Ok(verdict)
    }

    /// Syncs everything to disk. Nothing may be recorded afterwards.
    pub fn close(&self) {
        let Some(inner) = self.0.as_ref().filter(|inner| inner.can_write) else { return };
        inner.signal.close();
        if let Err(error) = lock(&inner.store).close() {
            tracing::error!(%error, "cannot close the log of events");
        }
    }
}

impl Inner {
    /// Passes the events from `since` to `last`, apart from calls.
    fn visit(
        &self,
        since: u64,
        last: u64,
        mut take: impl FnMut(EventRecord),
    ) -> Result<(), EventError> {
        let (source, _) = self.source(since);
        reading::visit(source, since, last, |event, class| {
            if class != Some(EventClass::Calls)
                && let Ok(record) = serde_json::from_str(&event.json)
            {
                take(record);
            }
        })
    }

    /// The newest events that match; reads no more of the log than necessary.
    fn newest(&self, query: &EventQuery) -> Result<Texts, EventError> {
        let mut page = Texts::default();
        let last = *self.last.borrow();
        for since in reading::starts(query.limit, last) {
            let (source, last) = self.source(since);
            page = reading::read(source, query, since, last)?;
            if reading::is_full(&page, query.limit) {
                break;
            }
        }
        Ok(page)
    }

    /// The state after all events, the number of the last one, and the time that continues theirs.
    fn now(&self) -> (KnownState, u64, u64) {
        let store = lock(&self.store);
        (store.known_state.clone(), store.written, store.now_ms())
    }

    /// Where to read events from this number on, and the number of the last one.
    fn source(&self, since: u64) -> (EventSource, u64) {
        let store = lock(&self.store);
        let source = match store.tail.from(since) {
            Some(events) => EventSource::Memory(events),
            None => EventSource::Files(store.files()),
        };
        (source, store.written)
    }

    fn snapshot(&self) -> Snapshot {
        let store = lock(&self.store);
        Snapshot {
            files: store.files(),
            dropped_through: store.dropped_through(),
            checkpoint: store.checkpoint.clone(),
            last: store.written,
            newest: store.newest(),
        }
    }

    /// Syncs what was appended, without keeping others from appending.
    fn sync(&self) {
        let files = lock(&self.store).take_unsynced();
        for file in files {
            if let Err(error) = file.sync_data() {
                tracing::error!(%error, "cannot sync events");
                lock(&self.store).note_unsynced(&error);
                self.signal.notify();
            }
        }
    }

    /// Writes what waits for room.
    fn retry(&self) {
        let mut store = lock(&self.store);
        let _ = store.write_waiting();
        if let Err(error) = store.keep_checkpoint() {
            tracing::error!(%error, "cannot write the checkpoint of the events");
        }
        let last = store.written;
        let again = store.is_dirty();
        drop(store);
        self.last.send_if_modified(|known| std::mem::replace(known, last) != last);
        if again {
            self.signal.notify();
        }
    }
}

fn sync_until_closed(signal: &SyncSignal, inner: &Weak<Inner>) {
    while signal.wait() {
        let Some(inner) = inner.upgrade() else { return };
        inner.sync();
        inner.retry();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.signal.close();
    }
}
