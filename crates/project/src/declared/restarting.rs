//! Processes that are being started, or ended to be started again: until that is done, their next run is what counts.

use std::sync::Arc;

use super::file_status::Declared;
use super::managed::ManagedProcess;
use patterm_panes::process::Process;

/// A process is being started, or ended to be started again. While this exists, its earlier run does not count, and
/// those that wait for it keep waiting.
#[derive(Debug)]
pub struct Restarting {
    declared: Arc<Declared>,
    name: String,
}

impl Restarting {
    /// Notes it under the lock that protects `managed`, so that nobody sees the process before its start.
    pub(super) fn of(declared: &Arc<Declared>, managed: &mut ManagedProcess, name: &str) -> Self {
        managed.restarting += 1;
        Self { declared: declared.clone(), name: name.to_owned() }
    }
}

impl Drop for Restarting {
    fn drop(&mut self) {
        let mut state = self.declared.state();
        let managed = state.managed.of(&self.name);
        managed.restarting = managed.restarting.saturating_sub(1);
        drop(state);
        self.declared.notify();
        // Callers may be waiting for a run that does not come.
        self.declared.panes.processes.notify();
    }
}

impl Declared {
    /// Notes that a process is ended only to be started again, until the result is dropped; `None` if it is not
    /// declared.
    pub fn begin_restart(self: &Arc<Self>, process: &Process) -> Option<Restarting> {
        let name = process.declared.as_ref()?.name.clone();
        Some(Restarting::of(self, self.state().managed.of(&name), &name))
    }
}
