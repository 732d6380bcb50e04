//! Panes of agents of which something may run on outside of any pane: the init of such a pane was
//! killed after its keeper, so that nothing above its processes says any more where they came from.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{Kind, Process};

/// The kernel counts the time of its start in whole seconds, and a program runs a moment before its
/// start is written down.
const CLOCK_SLACK_MS: u64 = 2_000;

/// When the first such pane began, in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct LeftBehind(AtomicU64);

impl Default for LeftBehind {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl LeftBehind {
    /// When that was; `None` if there is no such pane.
    pub(crate) fn since(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|since| *since != u64::MAX)
    }

    /// Notes that a pane left something behind.
    pub(crate) fn note(&self, process: &Process) {
        if is_of_agents(process) {
            let began = process.started_at.unwrap_or(0).saturating_sub(CLOCK_SLACK_MS);
            self.0.fetch_min(began, Ordering::AcqRel);
        }
    }
}

/// Whether agents may type in a pane: theirs, what the project file declares, what an agent started
/// (though it may be closed by now), and what came over HTTP or from nobody knows where.
pub fn is_of_agents(process: &Process) -> bool {
    process.kind == Kind::Agent
        || process.declared.is_some()
        || process.parent_id.is_some()
        || process.not_a_persons
        || process.adopted
}
