//! The timers of a project, as the state folder holds them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::book::{Book, NewTimer};
use crate::clock::{Clock, Moment};
use crate::error::TimerError;
use crate::record::{End, Timer, TimerId};
use crate::sight::Sight;
use crate::words;
use crate::world::{Deliver, Observe};
use patterm_panes::process::ProcessId;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "timers.json";
const VERSION: u32 = 1;

/// The timers of a project. What callers are told is on the disk before they are.
#[derive(Debug)]
pub struct Timers {
    file: PathBuf,
    pub(crate) observe: Arc<dyn Observe>,
    pub(crate) deliver: Arc<dyn Deliver>,
    pub(crate) clock: Clock,
    inner: Mutex<Inner>,
    /// Notified when the driver should look again.
    pub(crate) wakeup: Notify,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    book: Book,
    /// What the book says is not on the disk yet.
    unwritten: bool,
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
        let inner = Mutex::new(Inner { unwritten: book != left, book });
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

    /// Sets a timer; returns it, and whether it was there already.
    pub fn set(&self, new: NewTimer) -> Result<(Timer, bool), TimerError> {
        let now = self.now();
        let set =
            self.change(state::write, |book| book.set(new, &now, |id| self.observe.sight(id)));
        set.map(|(timer, already)| (self.present(timer), already))
    }

    /// The moment it is.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Ends a timer without its text.
    pub fn cancel(&self, id: &TimerId) -> Result<(), TimerError> {
        self.change(state::write_reserved, |book| {
            book.find(id)?;
            book.end(id, End::Cancelled);
            Ok(())
        })
    }

    /// Has a timer not count until it is resumed.
    pub fn pause(&self, id: &TimerId) -> Result<Timer, TimerError> {
        let now = self.now();
        let paused = self.change(state::write_reserved, |book| {
            book.pause(id, &now);
            book.find(id).cloned()
        });
        paused.map(|timer| self.present(timer))
    }

    /// Lets a paused timer go on.
    pub fn resume(&self, id: &TimerId) -> Result<Timer, TimerError> {
        let now = self.now();
        self.change(state::write_reserved, |book| {
            book.resume(id, &now, |id| self.observe.sight(id));
            book.find(id).cloned()
        })
    }

    /// One of them; the error says what became of it.
    pub fn find(&self, id: &TimerId) -> Result<Timer, TimerError> {
        self.lock().book.find(id).cloned()
    }

    /// All that are set, oldest first, and the moment they are seen at.
    pub fn all(&self) -> (Vec<Timer>, Moment) {
        let mut timers = self.lock().book.all().to_vec();
        self.show_present(&mut timers);
        (timers, self.now())
    }

    /// A process was closed: its own timers go, and those that watch it look again.
    pub fn close(&self, process: &ProcessId) {
        let mut inner = self.lock();
        inner.unwritten |= inner.book.close_owner(process);
        drop(inner);
        self.write_down();
        self.wakeup.notify_one();
    }

    /// Something ended that a timer may watch.
    pub fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Counts the changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The processes that timers listen to.
    pub(crate) fn listens_to(&self) -> HashSet<ProcessId> {
        self.lock().book.listens_to()
    }

    /// Looks at every process that is listened to.
    pub(crate) fn look(&self) {
        for id in self.listens_to() {
            let sight = self.observe.sight(&id);
            let mut inner = self.lock();
            inner.unwritten |= inner.book.observe(&id, sight);
        }
    }

    /// Fires the next timer that is to fire, those put back aside: `None` if there is none. An error
    /// says whose text could not be queued now.
    ///
    /// Its text is queued under its own key before the timer goes: whoever dies in between, the
    /// next server finds out. Nobody can cancel or pause it meanwhile.
    pub(crate) fn fire_next(&self, put_back: &HashSet<TimerId>) -> Option<Result<(), TimerId>> {
        let mut inner = self.lock();
        let now = self.now();
        let (timer, why) = inner.book.ready(&now, |id| !put_back.contains(id))?;
        let (id, to) = (timer.id.clone(), timer.owner.clone());
        let mut how = End::OwnerClosed;
        if self.observe.process(&to).is_some() {
            let text = words::text(timer, why, &*self.observe);
            if let Err(error) = self.deliver.deliver(&to, &id, text) {
                tracing::warn!(%id, error, "a timer cannot fire now");
                return Some(Err(id));
            }
            how = End::Fired;
        }
        tracing::info!(%id, ?why, ?how, "a timer is over");
        inner.book.end(&id, how);
        inner.unwritten = true;
        Some(Ok(()))
    }

    /// When the next is over, those put back aside.
    pub(crate) fn next_due(&self, put_back: &HashSet<TimerId>) -> Option<u64> {
        self.lock().book.next_due(|id| !put_back.contains(id))
    }

    /// Writes down what happened, which no full disk can undo: what cannot be written now is written
    /// with the next change, and a server that dies before finds it out again.
    pub(crate) fn write_down(&self) {
        let mut inner = self.lock();
        if !inner.unwritten {
            return;
        }
        inner.book.note_wall(&self.now());
        self.changes.send_modify(|count| *count += 1);
        match state::write_reserved(&self.file, VERSION, &inner.book) {
            Ok(()) => inner.unwritten = false,
            Err(error) => tracing::error!(%error, "what timers did is not written down yet"),
        }
    }

    /// Changes the book; if it cannot be written, it is as before.
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
        *inner = Inner { book: next, unwritten: false };
        drop(inner);
        self.wakeup.notify_one();
        self.changes.send_modify(|count| *count += 1);
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows timers what they watch as it is now, paused ones too.
    fn show_present(&self, timers: &mut [Timer]) {
        let mut seen: HashMap<ProcessId, Sight> = HashMap::new();
        for watched in timers.iter_mut().flat_map(Timer::watched_mut) {
            let sight =
                seen.entry(watched.id.clone()).or_insert_with_key(|id| self.observe.sight(id));
            watched.seen = *sight;
        }
    }

    fn present(&self, mut timer: Timer) -> Timer {
        self.show_present(std::slice::from_mut(&mut timer));
        timer
    }
}
