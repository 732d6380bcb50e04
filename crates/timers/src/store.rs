//! The timers of a project, saved in the state folder.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::book::{Book, NewTimer};
use crate::error::TimerError;
use crate::firing_text;
use crate::interfaces::{Deliver, Observe};
use crate::observation::Observation;
use crate::record::{End, Timer, TimerId};
use crate::recorder::TimerRecorder;
use patterm_events::EventLog;
use patterm_panes::process::ProcessId;
use patterm_store::clock::{Clock, Moment};
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "timers.json";
const VERSION: u32 = 1;

/// The timers of a project. Every change is on disk before its caller gets a result.
#[derive(Debug)]
pub struct Timers {
    file: PathBuf,
    pub(crate) observe: Arc<dyn Observe>,
    pub(crate) deliver: Arc<dyn Deliver>,
    pub(crate) clock: Clock,
    inner: Mutex<Inner>,
    /// Notified when the driver should check again.
    pub(crate) wakeup: Notify,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    book: Book,
    /// Whether the book has changes that are not on disk yet.
    unwritten: bool,
    recorder: TimerRecorder,
}

impl Timers {
    /// Reads what earlier servers left.
    pub fn load(
        state: &StateDir,
        observe: Arc<dyn Observe>,
        deliver: Arc<dyn Deliver>,
        clock: Clock,
    ) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let left: Book = state::read(&file, VERSION)?.unwrap_or_default();
        let mut book = left.clone();
        book.recover(&clock.now(), &deliver.delivered(), |owner| observe.process(owner).is_some());
        let recorder = TimerRecorder::default();
        let inner = Mutex::new(Inner { unwritten: book != left, book, recorder });
        Ok(Self {
            file,
            observe,
            deliver,
            clock,
            inner,
            wakeup: Notify::new(),
            changes: watch::Sender::new(0),
        })
    }

    /// Records all changes as events, and those that an earlier server made without recording them.
    #[must_use]
    pub fn with_events(self, events: EventLog) -> Self {
        let mut recorder = TimerRecorder::new(events);
        let mut inner = self.lock();
        recorder.compare(&inner.book, true);
        inner.recorder = recorder;
        drop(inner);
        self
    }

    /// Sets a timer; returns it, and whether it already existed.
    pub fn set(&self, new: NewTimer) -> Result<(Timer, bool), TimerError> {
        let now = self.now();
        let set = self
            .change(state::write, |book| book.set(new, &now, |id| self.observe.observation(id)));
        set.map(|(timer, already)| (self.present(timer), already))
    }

    /// The current moment.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Ends a timer without delivering its text.
    pub fn cancel(&self, id: &TimerId) -> Result<(), TimerError> {
        self.change(state::write_reserved, |book| {
            book.find(id)?;
            book.end(id, End::Cancelled);
            Ok(())
        })
    }

    /// Stops a timer until it is resumed.
    pub fn pause(&self, id: &TimerId) -> Result<Timer, TimerError> {
        let now = self.now();
        let paused = self.change(state::write_reserved, |book| {
            book.pause(id, &now);
            book.find(id).cloned()
        });
        paused.map(|timer| self.present(timer))
    }

    /// Continues a paused timer.
    pub fn resume(&self, id: &TimerId) -> Result<Timer, TimerError> {
        let now = self.now();
        self.change(state::write_reserved, |book| {
            book.resume(id, &now, |id| self.observe.observation(id));
            book.find(id).cloned()
        })
    }

    /// Finds a timer; the error says what happened to it.
    pub fn find(&self, id: &TimerId) -> Result<Timer, TimerError> {
        self.lock().book.find(id).cloned()
    }

    /// All timers, oldest first, and the current moment.
    pub fn all(&self) -> (Vec<Timer>, Moment) {
        let mut timers = self.lock().book.all().to_vec();
        self.show_present(&mut timers);
        (timers, self.now())
    }

    /// A process was closed: ends its timers, and checks those that watch it.
    pub fn close(&self, process: &ProcessId) {
        let mut inner = self.lock();
        inner.unwritten |= inner.book.close_owner(process);
        drop(inner);
        self.save_events();
        self.wakeup.notify_one();
    }

    /// A watched process may have exited.
    pub fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Counts the changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The processes that timers watch.
    pub(crate) fn watched_processes(&self) -> HashSet<ProcessId> {
        self.lock().book.watched_processes()
    }

    /// Observes every watched process.
    pub(crate) fn observe_all(&self) {
        for id in self.watched_processes() {
            let observation = self.observe.observation(&id);
            let mut inner = self.lock();
            inner.unwritten |= inner.book.observe(&id, observation);
        }
    }

    /// Fires the next ready timer, except those in `put_back`; `None` if there is none. The
    /// error is the timer whose text cannot be queued now.
    ///
    /// The text is queued under the timer's id before the timer ends, so that if the server
    /// dies in between, the next one finds out. The lock prevents cancelling or pausing it
    /// in the meantime.
    pub(crate) fn fire_next(&self, put_back: &HashSet<TimerId>) -> Option<Result<(), TimerId>> {
        let mut inner = self.lock();
        let now = self.now();
        let (timer, why) = inner.book.ready(&now, |id| !put_back.contains(id))?;
        let (id, to) = (timer.id.clone(), timer.owner.clone());
        let mut how = End::OwnerClosed;
        if self.observe.process(&to).is_some() {
            let text = firing_text::text(timer, why, &*self.observe);
            if let Err(error) = self.deliver.deliver(&to, &id, text) {
                tracing::warn!(%id, error, "a timer cannot fire now");
                return Some(Err(id));
            }
            how = End::Fired;
        }
        tracing::info!(%id, ?why, ?how, "a timer ended");
        inner.book.end(&id, how);
        inner.unwritten = true;
        Some(Ok(()))
    }

    /// When the next timer is due, except those in `put_back`.
    pub(crate) fn next_due(&self, put_back: &HashSet<TimerId>) -> Option<u64> {
        self.lock().book.next_due(|id| !put_back.contains(id))
    }

    /// Saves events. They have happened even if the disk is full: a failed write is
    /// repeated with the next change, and if the server dies first, the next one observes
    /// them again.
    pub(crate) fn save_events(&self) {
        let mut inner = self.lock();
        if !inner.unwritten {
            return;
        }
        inner.book.note_wall(&self.now());
        self.changes.send_modify(|count| *count += 1);
        match state::write_reserved(&self.file, VERSION, &inner.book) {
            Ok(()) => inner.unwritten = false,
            Err(error) => tracing::error!(%error, "cannot record the changes of timers yet"),
        }
        let Inner { book, recorder, .. } = &mut *inner;
        recorder.compare(book, false);
    }

    /// Changes the book; it is unchanged if it cannot be saved.
    fn change<T>(
        &self,
        write: fn(&Path, u32, &Book) -> Result<(), StateError>,
        change: impl FnOnce(&mut Book) -> Result<T, TimerError>,
    ) -> Result<T, TimerError> {
        let mut inner = self.lock();
        let mut next = inner.book.clone();
        let answer = change(&mut next)?;
        next.note_wall(&self.now());
        write(&self.file, VERSION, &next)?;
        (inner.book, inner.unwritten) = (next, false);
        let Inner { book, recorder, .. } = &mut *inner;
        recorder.compare(book, false);
        drop(inner);
        self.wakeup.notify_one();
        self.changes.send_modify(|count| *count += 1);
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates timers with the current state of the processes they watch, even paused ones.
    fn show_present(&self, timers: &mut [Timer]) {
        let mut seen: HashMap<ProcessId, Observation> = HashMap::new();
        for watched in timers.iter_mut().flat_map(Timer::watched_mut) {
            let observation = seen
                .entry(watched.id.clone())
                .or_insert_with_key(|id| self.observe.observation(id));
            watched.seen = *observation;
        }
    }

    fn present(&self, mut timer: Timer) -> Timer {
        self.show_present(std::slice::from_mut(&mut timer));
        timer
    }
}
