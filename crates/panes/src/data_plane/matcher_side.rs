//! The part of a run that belongs to the matcher.

use std::sync::{Mutex, MutexGuard};

use patterm_store::sync::lock;

use super::turns::Queued;
use super::waiters::Waiters;

/// The callers that wait for a pattern. They add and remove themselves, and the matcher answers them; both under the
/// mutex, which is held for at most one turn of the matcher.
#[derive(Debug, Default)]
pub(super) struct MatcherSide {
    waiters: Mutex<Waiters>,
    /// Whether the run waits for a turn of the matcher.
    pub(super) queued: Queued,
}

impl MatcherSide {
    pub(super) fn waiters(&self) -> MutexGuard<'_, Waiters> {
        lock(&self.waiters)
    }
}
