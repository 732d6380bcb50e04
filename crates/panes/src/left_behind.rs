//! Panes of agents whose processes may run outside of any pane: the init of such a pane was killed after its keeper,
//! so that their ancestors no longer show where they came from.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{Kind, Process};

/// The kernel reports its boot time in whole seconds, and a program runs for a moment before its start is recorded.
const CLOCK_SLACK_MS: u64 = 2_000;

/// When the first such pane started, in milliseconds since 1970; `u64::MAX` if there is none.
#[derive(Debug)]
pub(crate) struct LeftBehind(AtomicU64);

impl Default for LeftBehind {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl LeftBehind {
    /// When the first such pane started; `None` if there is none.
    pub(crate) fn since(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|since| *since != u64::MAX)
    }

    /// Records that a pane left processes behind.
    pub(crate) fn note(&self, process: &Process) {
        if is_of_agents(process) {
            let began = process.started_at.unwrap_or(0).saturating_sub(CLOCK_SLACK_MS);
            self.0.fetch_min(began, Ordering::AcqRel);
        }
    }
}

/// Whether agents may type into a pane: their own panes, declared processes, processes that an agent started (even if
/// that agent is closed by now), and processes that were started over HTTP or whose origin is unknown.
pub fn is_of_agents(process: &Process) -> bool {
    process.kind == Kind::Agent
        || process.declared.is_some()
        || process.parent_id.is_some()
        || process.not_a_persons
        || process.adopted
}
