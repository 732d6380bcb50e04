//! The timers of a project, as the state folder holds them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::book::{Book, NewTimer};
use super::clock::{Clock, Moment};
use super::record::{End, Timer, TimerId};
use super::sight::{BusyAgent, Sight};
use super::words;
use crate::activity::{FAILED, State, Verdict};
use crate::delivery::{Deliveries, NewDelivery, Source};
use crate::host::Host;
use crate::process::{Process, ProcessId, Processes};
use crate::tools::ToolError;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "timers.json";
const VERSION: u32 = 1;

/// The timers of a project. What callers are told is on the disk before they are.
#[derive(Debug)]
pub(crate) struct Timers {
    file: PathBuf,
    pub(super) clock: Clock,
    inner: Mutex<Inner>,
    /// Rung when the driver should look again.
    pub(super) bell: Notify,
    /// Rung at every change.
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
    pub(crate) fn load(
        state: &StateDir,
        processes: &Processes,
        deliveries: &Deliveries,
        clock: Clock,
    ) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let left: Book = state::read(&file, VERSION)?.unwrap_or_default();
        let mut book = left.clone();
        let fired: Vec<_> = deliveries.all().into_iter().filter_map(|d| of(&d.source)).collect();
        book.take_up(&clock.now(), &fired, |owner| processes.get(owner).is_some());
        let inner = Mutex::new(Inner { unwritten: book != left, book });
        Ok(Self { file, clock, inner, bell: Notify::new(), changes: watch::Sender::new(0) })
    }

    /// Sets a timer; returns it, and whether it was there already.
    pub(crate) fn set(&self, new: NewTimer, host: &Host) -> Result<(Timer, bool), ToolError> {
        let now = self.now();
        let set = self.change(state::write, |book| book.set(new, &now, |id| Sight::of(host, id)));
        set.map(|(timer, already)| (present(timer, host), already))
    }

    /// The moment it is.
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn cancel(&self, id: &TimerId) -> Result<(), ToolError> {
        self.change(state::write_reserved, |book| {
            book.find(id)?;
            book.end(id, End::Cancelled);
            Ok(())
        })
    }

    pub(crate) fn pause(&self, id: &TimerId, host: &Host) -> Result<Timer, ToolError> {
        let now = self.now();
        let paused = self.change(state::write_reserved, |book| {
            book.pause(id, &now);
            book.find(id).cloned()
        });
        paused.map(|timer| present(timer, host))
    }

    pub(crate) fn resume(&self, id: &TimerId, host: &Host) -> Result<Timer, ToolError> {
        let now = self.now();
        self.change(state::write_reserved, |book| {
            book.resume(id, &now, |id| Sight::of(host, id));
            book.find(id).cloned()
        })
    }

    /// One of them; the error says what became of it.
    pub(crate) fn find(&self, id: &TimerId) -> Result<Timer, ToolError> {
        self.lock().book.find(id).cloned()
    }

    /// All that are set, oldest first, and the moment they are seen at.
    pub(crate) fn all(&self, host: &Host) -> (Vec<Timer>, Moment) {
        let mut timers = self.lock().book.all().to_vec();
        show_present(&mut timers, host);
        (timers, self.now())
    }

    /// A process was closed: its own timers go, and those that watch it look again.
    pub(crate) fn close(&self, process: &ProcessId) {
        let mut inner = self.lock();
        inner.unwritten |= inner.book.close_owner(process);
        drop(inner);
        self.write_down();
        self.bell.notify_one();
    }

    /// Something ended that a timer may watch.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Rung at every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The processes that timers listen to.
    pub(super) fn listens_to(&self) -> HashSet<ProcessId> {
        self.lock().book.listens_to()
    }

    /// Looks at every process that is listened to.
    pub(super) fn look(&self, host: &Host) {
        for id in self.listens_to() {
            let sight = Sight::of(host, &id);
            let mut inner = self.lock();
            inner.unwritten |= inner.book.observe(&id, sight);
        }
    }

    /// Fires the next timer that is to fire, those put back aside: `None` if there is none. An error
    /// says whose text could not be handed in now.
    ///
    /// Its text is handed in under its own key before the timer goes: whoever dies in between, the
    /// next server finds out. Nobody can cancel or pause it meanwhile.
    pub(super) fn fire_next(
        &self,
        host: &Host,
        put_back: &HashSet<TimerId>,
    ) -> Option<Result<(), TimerId>> {
        let mut inner = self.lock();
        let now = self.now();
        let (timer, why) = inner.book.ready(&now, |id| !put_back.contains(id))?;
        let (id, to) = (timer.id.clone(), timer.owner.clone());
        let mut how = End::OwnerClosed;
        if host.processes.get(&to).is_some() {
            let text = words::text(timer, why, host);
            let source = Source::Timer { timer_id: id.to_string() };
            let new = NewDelivery { to, source, key: Some(format!("timer {id}")), text };
            if let Err(error) = host.deliveries.hand_in(new) {
                tracing::warn!(%id, error = error.message, "a timer cannot fire now");
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
    pub(super) fn next_due(&self, put_back: &HashSet<TimerId>) -> Option<u64> {
        self.lock().book.next_due(|id| !put_back.contains(id))
    }

    /// Writes down what happened, which no full disk can undo: what cannot be written now is written
    /// with the next change, and a server that dies before finds it out again.
    pub(super) fn write_down(&self) {
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
        change: impl FnOnce(&mut Book) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut inner = self.lock();
        let mut next = inner.book.clone();
        let answer = change(&mut next)?;
        next.note_wall(&self.now());
        write(&self.file, VERSION, &next)?;
        *inner = Inner { book: next, unwritten: false };
        drop(inner);
        self.bell.notify_one();
        self.changes.send_modify(|count| *count += 1);
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl words::Around for Host {
    fn find(&self, id: &ProcessId) -> Option<Process> {
        self.processes.get(id)
    }

    fn busy_below(&self, id: &ProcessId) -> Vec<BusyAgent> {
        self.busy_agents_below(id)
    }

    fn has_failed(&self, id: &ProcessId) -> bool {
        let Verdict { state, reason, .. } = self.activities.get(id).verdict;
        state == State::Idle && reason.starts_with(FAILED)
    }

    fn awaits_text(&self, id: &ProcessId) -> bool {
        self.deliveries.has_open(id)
    }

    fn limited_until(&self, id: &ProcessId) -> Option<String> {
        self.activities.get(id).verdict.limited_until
    }
}

/// Shows timers what they watch as it is now, paused ones too.
fn show_present(timers: &mut [Timer], host: &Host) {
    let mut seen: HashMap<ProcessId, Sight> = HashMap::new();
    for watched in timers.iter_mut().flat_map(Timer::watched_mut) {
        let sight = seen.entry(watched.id.clone()).or_insert_with_key(|id| Sight::of(host, id));
        watched.seen = *sight;
    }
}

fn present(mut timer: Timer, host: &Host) -> Timer {
    show_present(std::slice::from_mut(&mut timer), host);
    timer
}

/// The timer that something was handed in for.
fn of(source: &Source) -> Option<TimerId> {
    match source {
        Source::Timer { timer_id } => Some(TimerId::named(timer_id)),
        Source::FirstPrompt { .. } | Source::Message { .. } => None,
    }
}
