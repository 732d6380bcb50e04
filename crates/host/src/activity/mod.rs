//! Whether processes work, are idle or wait for a person, and why that is said.

mod verdict;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(crate) use verdict::{Standing, State, Verdict};

use crate::process::ProcessId;

/// What stands of every process in the table. An entry goes when its process is closed; whoever
/// follows it sees the channel end.
#[derive(Debug, Default)]
pub(crate) struct Activities(Mutex<HashMap<ProcessId, watch::Sender<Standing>>>);

impl Activities {
    /// Follows a process; it is taken for unknown until something is seen of it.
    pub(crate) fn watch(&self, id: &ProcessId) -> watch::Receiver<Standing> {
        self.map().entry(id.clone()).or_default().subscribe()
    }

    /// What stands of a process now.
    pub(crate) fn get(&self, id: &ProcessId) -> Standing {
        self.map().get(id).map(|standing| standing.borrow().clone()).unwrap_or_default()
    }

    /// Says what is seen now.
    pub(crate) fn set(&self, id: &ProcessId, verdict: Verdict, settled: bool) {
        let mut map = self.map();
        map.entry(id.clone()).or_default().send_if_modified(|standing| {
            let changed = standing.verdict != verdict || standing.settled != settled;
            standing.rests += u64::from(settled && !standing.settled);
            standing.verdict = verdict;
            standing.settled = settled;
            changed
        });
    }

    /// The process is closed.
    pub(crate) fn forget(&self, id: &ProcessId) {
        self.map().remove(id);
    }

    fn map(&self) -> MutexGuard<'_, HashMap<ProcessId, watch::Sender<Standing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
