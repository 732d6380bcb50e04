//! The thread that syncs appended events to disk soon, and writes those that wait for room.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use patterm_store::sync::lock;

/// How long an event may wait to be synced, so that events of a burst are synced together: with the sync itself, less
/// than the second that a power loss may cost.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

/// Wakes the thread.
#[derive(Debug, Default)]
pub(crate) struct SyncSignal {
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SyncState {
    dirty: bool,
    closed: bool,
}

impl SyncSignal {
    /// There is something to sync.
    pub(crate) fn notify(&self) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.dirty, true) {
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_one();
    }

    /// Waits until there is something to sync, and then until a burst may be over; `false` at the end.
    pub(crate) fn wait(&self) -> bool {
        let state = lock(&self.state);
        let idle = |state: &mut SyncState| !state.dirty && !state.closed;
        let Ok(state) = self.changed.wait_while(state, idle) else { return false };
        let paused = self.changed.wait_timeout_while(state, PAUSE, |state| !state.closed);
        let Ok((mut state, _)) = paused else { return false };
        state.dirty = false;
        !state.closed
    }
}
