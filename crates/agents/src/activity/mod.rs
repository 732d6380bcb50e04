//! Whether processes work, are idle or wait for a person, and why that is said.

pub(crate) mod census;
pub(crate) mod judge;
pub(crate) mod limit_end;
pub(crate) mod program;
#[cfg(test)]
mod recording_tests;
mod screen_snapshot;
pub(crate) mod signals;
pub(crate) mod tracker;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use crate::activity_state::{Activity, ActivityState, ActivityStatus};
pub use judge::FAILED;
pub(crate) use judge::{asks_now, works_now};
pub use screen_snapshot::ScreenSnapshot;
pub use signals::AgentSignals;

use patterm_panes::process::{Process, ProcessId, Status};

#[derive(Debug, Default)]
struct Entry {
    status: watch::Sender<ActivityStatus>,
    signals: Arc<AgentSignals>,
    /// Held by everything that waits for a change.
    followers: Arc<()>,
}

/// A place among those that wait for a change of a process's state.
#[derive(Debug)]
pub struct Follower {
    /// The status, and its changes.
    pub status: watch::Receiver<ActivityStatus>,
    _count: Arc<()>,
}

/// What stands of every process in the table. An entry goes when its process is closed; whoever
/// follows it sees the channel end.
#[derive(Debug, Default)]
pub struct Activities {
    entries: Mutex<HashMap<ProcessId, Entry>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// Calls that look at every change.
    waiters: AtomicUsize,
}

/// The place of a call that waits for a change; given up when this is dropped.
#[derive(Debug)]
pub struct WaiterPermit<'a> {
    waiters: &'a AtomicUsize,
}

impl Drop for WaiterPermit<'_> {
    fn drop(&mut self) {
        self.waiters.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Activities {
    /// Follows a process; it is taken for unknown until something is seen of it.
    pub fn watch(&self, id: &ProcessId) -> watch::Receiver<ActivityStatus> {
        self.map().entry(id.clone()).or_default().status.subscribe()
    }

    /// The same for a timer or a caller that waits for a change, for which a process is looked at though it
    /// shows nothing.
    pub fn follow(&self, id: &ProcessId) -> Follower {
        let mut map = self.map();
        let entry = map.entry(id.clone()).or_default();
        let count = entry.followers.clone();
        entry.signals.notify();
        Follower { status: entry.status.subscribe(), _count: count }
    }

    /// Has a process looked at again of which nothing tells what it does; the next answer has what is seen.
    pub fn refresh(&self, id: &ProcessId) {
        let map = self.map();
        let entry = map.get(id);
        if let Some(entry) =
            entry.filter(|e| e.status.borrow().activity.state == ActivityState::Unknown)
        {
            entry.signals.notify();
        }
    }

    /// Whether a timer or a caller waits for a change.
    pub(crate) fn is_followed(&self, id: &ProcessId) -> bool {
        self.map().get(id).is_some_and(|entry| Arc::strong_count(&entry.followers) > 1)
    }

    /// What stands of a process now.
    pub fn get(&self, id: &ProcessId) -> ActivityStatus {
        self.map().get(id).map(|entry| entry.status.borrow().clone()).unwrap_or_default()
    }

    /// What is known of a process beside its screen.
    pub fn signals(&self, id: &ProcessId) -> Arc<AgentSignals> {
        self.map().entry(id.clone()).or_default().signals.clone()
    }

    /// Says what is seen now.
    pub fn set(&self, id: &ProcessId, activity: Activity, settled: bool) {
        let mut map = self.map();
        let changed = map.entry(id.clone()).or_default().status.send_if_modified(|status| {
            let changed = status.activity != activity || status.settled != settled;
            status.rests += u64::from(settled && !status.settled);
            status.activity = activity;
            status.settled = settled;
            changed
        });
        drop(map);
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// A place for a call that looks at every change, unless so many do already.
    pub fn wait_in_line(&self, most: usize) -> Option<WaiterPermit<'_>> {
        let place = WaiterPermit { waiters: &self.waiters };
        // A place that is one too many gives itself up again.
        (self.waiters.fetch_add(1, Ordering::AcqRel) < most).then_some(place)
    }

    /// Notified when any of them changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The process is closed.
    pub fn forget(&self, id: &ProcessId) {
        self.map().remove(id);
    }

    fn map(&self) -> MutexGuard<'_, HashMap<ProcessId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an agent that shows its prompt counts as working all the same.
pub(crate) const NOT_INSTRUCTED: &str = "its first instructions are not taken yet";

/// Whether an agent works only in so far as it has not got its first instructions.
pub(crate) fn awaits_instructions(activity: &Activity) -> bool {
    activity.state == ActivityState::Working && activity.reason == NOT_INSTRUCTED
}

/// What is said of a process that does not run.
pub fn ended(process: &Process) -> Activity {
    let reason = match (process.status, process.exit) {
        (Status::Exited, Some(exit)) => match (exit.code, exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it exited".into(),
        },
        (Status::Stopped, _) if process.runs == 0 => "it was not started yet".into(),
        (Status::Stopped, _) => "it was stopped".into(),
        (Status::Failed, _) => "it could not be started".into(),
        (Status::Lost, _) => {
            "what watched over it was killed; nothing of it is known to run".into()
        }
        (Status::Exited, None) => "it exited".into(),
        (Status::Starting | Status::Running, _) => "it ended".into(),
    };
    Activity::new(ActivityState::Idle, reason)
}
