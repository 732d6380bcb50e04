//! Whether processes work, are idle or wait for a person, and why that is said.

mod census;
mod facts;
mod glimpse;
mod judge;
mod limit_end;
mod observer;
mod program;
#[cfg(test)]
mod recording_tests;
mod tracker;
mod verdict;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(crate) use facts::Facts;
pub(crate) use glimpse::Glimpse;
pub(crate) use judge::{FAILED, asks_now, works_now};
pub(crate) use observer::{awaits_instructions, ended, observe};
pub(crate) use verdict::{Standing, State, Verdict};

use crate::process::ProcessId;

#[derive(Debug, Default)]
struct Entry {
    standing: watch::Sender<Standing>,
    facts: Arc<Facts>,
    /// Held by everything that waits for a change.
    followers: Arc<()>,
}

/// A place among those that wait for a change of a process's state.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) standing: watch::Receiver<Standing>,
    _count: Arc<()>,
}

/// What stands of every process in the table. An entry goes when its process is closed; whoever
/// follows it sees the channel end.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    entries: Mutex<HashMap<ProcessId, Entry>>,
    /// Rung at every change.
    changes: watch::Sender<u64>,
    /// Calls that look at every change.
    waiters: AtomicUsize,
}

/// The place of a call that waits for a change; given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    waiters: &'a AtomicUsize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiters.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Activities {
    /// Follows a process; it is taken for unknown until something is seen of it.
    pub(crate) fn watch(&self, id: &ProcessId) -> watch::Receiver<Standing> {
        self.map().entry(id.clone()).or_default().standing.subscribe()
    }

    /// The same for a timer or a caller that waits for a change, for which a process is looked at though it
    /// shows nothing.
    pub(crate) fn follow(&self, id: &ProcessId) -> Follower {
        let mut map = self.map();
        let entry = map.entry(id.clone()).or_default();
        let count = entry.followers.clone();
        entry.facts.ring();
        Follower { standing: entry.standing.subscribe(), _count: count }
    }

    /// Has a process looked at again of which nothing tells what it does; the next answer has what is seen.
    pub(crate) fn refresh(&self, id: &ProcessId) {
        let map = self.map();
        let entry = map.get(id);
        if let Some(entry) = entry.filter(|e| e.standing.borrow().verdict.state == State::Unknown) {
            entry.facts.ring();
        }
    }

    /// Whether a timer or a caller waits for a change.
    pub(crate) fn is_followed(&self, id: &ProcessId) -> bool {
        self.map().get(id).is_some_and(|entry| Arc::strong_count(&entry.followers) > 1)
    }

    /// What stands of a process now.
    pub(crate) fn get(&self, id: &ProcessId) -> Standing {
        self.map().get(id).map(|entry| entry.standing.borrow().clone()).unwrap_or_default()
    }

    /// What is known of a process beside its screen.
    pub(crate) fn facts(&self, id: &ProcessId) -> Arc<Facts> {
        self.map().entry(id.clone()).or_default().facts.clone()
    }

    /// Says what is seen now.
    pub(crate) fn set(&self, id: &ProcessId, verdict: Verdict, settled: bool) {
        let mut map = self.map();
        let changed = map.entry(id.clone()).or_default().standing.send_if_modified(|standing| {
            let changed = standing.verdict != verdict || standing.settled != settled;
            standing.rests += u64::from(settled && !standing.settled);
            standing.verdict = verdict;
            standing.settled = settled;
            changed
        });
        drop(map);
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// A place for a call that looks at every change, unless so many do already.
    pub(crate) fn wait_in_line(&self, most: usize) -> Option<Place<'_>> {
        let place = Place { waiters: &self.waiters };
        // A place that is one too many gives itself up again.
        (self.waiters.fetch_add(1, Ordering::AcqRel) < most).then_some(place)
    }

    /// Rung when any of them changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The process is closed.
    pub(crate) fn forget(&self, id: &ProcessId) {
        self.map().remove(id);
    }

    fn map(&self) -> MutexGuard<'_, HashMap<ProcessId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
