//! The activity of processes: working, idle, blocked, limited or unknown, with the evidence for it.

pub(crate) mod census;
pub(crate) mod dialog;
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

pub use crate::activity_state::{Activity, ActivityState, ActivityStatus, Dialog};
pub use judge::FAILED;
pub(crate) use judge::{asks_now, works_now};
pub use screen_snapshot::ScreenSnapshot;
pub use signals::AgentSignals;

use patterm_panes::process::{Process, ProcessId, RunNumber, Status};

#[derive(Debug, Default)]
struct Entry {
    status: watch::Sender<ActivityStatus>,
    signals: Arc<AgentSignals>,
    /// Each follower holds a clone; their number is the reference count.
    followers: Arc<()>,
}

/// A subscription to the state of a process, for which it is observed more closely.
#[derive(Debug)]
pub struct Follower {
    /// The status, and its changes.
    pub status: watch::Receiver<ActivityStatus>,
    _count: Arc<()>,
}

/// The activity of every process in the table. An entry is removed when its process is closed; its
/// followers see the channel end.
#[derive(Debug, Default)]
pub struct Activities {
    entries: Mutex<HashMap<ProcessId, Entry>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The number of calls that wait for any change.
    waiters: AtomicUsize,
}

/// Permission for a call to wait for changes; released on drop.
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
    /// Watches a process. Its state is unknown until it has been observed.
    pub fn watch(&self, id: &ProcessId) -> watch::Receiver<ActivityStatus> {
        self.map().entry(id.clone()).or_default().status.subscribe()
    }

    /// Like [`Self::watch`], for a timer or a caller that waits for a change: the process is
    /// checked from time to time even if it shows nothing.
    pub fn follow(&self, id: &ProcessId) -> Follower {
        let mut map = self.map();
        let entry = map.entry(id.clone()).or_default();
        let count = entry.followers.clone();
        entry.signals.notify();
        Follower { status: entry.status.subscribe(), _count: count }
    }

    /// Has a process of unknown activity checked again; the next call returns the result.
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

    /// The current status of a process.
    pub fn get(&self, id: &ProcessId) -> ActivityStatus {
        self.map().get(id).map(|entry| entry.status.borrow().clone()).unwrap_or_default()
    }

    /// What is known about a process apart from its screen.
    pub fn signals(&self, id: &ProcessId) -> Arc<AgentSignals> {
        self.map().entry(id.clone()).or_default().signals.clone()
    }

    /// Sets the activity of a process.
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

    /// A permit for a call that waits for any change, unless `most` calls already wait.
    pub fn waiter_permit(&self, most: usize) -> Option<WaiterPermit<'_>> {
        let permit = WaiterPermit { waiters: &self.waiters };
        // A permit too many releases itself.
        (self.waiters.fetch_add(1, Ordering::AcqRel) < most).then_some(permit)
    }

    /// Notified of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets a closed process.
    pub fn forget(&self, id: &ProcessId) {
        self.map().remove(id);
    }

    fn map(&self) -> MutexGuard<'_, HashMap<ProcessId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an agent that shows its prompt counts as working nevertheless.
pub(crate) const NOT_INSTRUCTED: &str = "it has not accepted its first instructions yet";

/// Whether an agent counts as working only because it has not accepted its first instructions.
pub(crate) fn awaits_instructions(activity: &Activity) -> bool {
    activity.state == ActivityState::Working && activity.reason == NOT_INSTRUCTED
}

/// The activity of a process that is not running.
pub fn ended(process: &Process) -> Activity {
    let reason = match (process.status, process.exit) {
        (Status::Exited, Some(exit)) => match (exit.code, exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it exited".into(),
        },
        (Status::Stopped, _) if process.runs == RunNumber::NONE => {
            "it has not been started yet".into()
        }
        (Status::Stopped, _) => "it was stopped".into(),
        (Status::Failed, _) => "it could not be started".into(),
        (Status::Lost, _) => {
            "its keeper or init was killed; whether it still runs is unknown".into()
        }
        (Status::Exited, None) => "it exited".into(),
        (Status::Starting | Status::Running, _) => "it ended".into(),
    };
    Activity::new(ActivityState::Idle, reason)
}
