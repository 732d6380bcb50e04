//! Starts that are still to come: a process that waits for its dependencies, has a restart due, or is being restarted
//! counts as its next run. They are recorded, so that the next server continues after a crash or an upgrade.

use std::time::Duration;

use tokio::time::Instant;

use super::file_status::Declared;
use super::handle::end_of;
use super::managed::ManagedProcess;
use super::policy::{Next, next};
use crate::project_file::Definition;
use patterm_panes::process::{Process, Status};

impl Declared {
    /// Whether a process that is not running is to be started without another request.
    pub fn is_about_to_run(&self, process: &Process) -> bool {
        if process.status.is_alive() {
            return process.status == Status::Starting;
        }
        let Some(entry) = &process.declared else { return false };
        let mut state = self.state();
        if !state.driven {
            return false;
        }
        let file = state.effect.clone().unwrap_or_default();
        let managed = state.managed.of(&entry.name);
        let definition = file.processes.get(&entry.name);
        definition.is_some_and(|definition| has_next_run(managed, definition, process))
    }

    /// Records the pending starts.
    pub(super) fn record_pending(&self) {
        let mut state = self.state();
        if state.takes_over {
            // Those of the earlier server are still recorded.
            return;
        }
        let mut changed = Vec::new();
        for process in self.panes.processes.all() {
            let Some(entry) = &process.declared else { continue };
            let managed = state.managed.of(&entry.name);
            let restart_at = managed.again_at.and(entry.restart_at);
            if (managed.wanted, restart_at) != (entry.wanted, entry.restart_at) {
                changed.push((process.id, managed.wanted, restart_at));
            }
        }
        // Another request may change them at the same time; the last record must be of the last change.
        for (id, wanted, restart_at) in changed {
            self.panes.processes.note(&id, |process| {
                if let Some(entry) = &mut process.declared {
                    (entry.wanted, entry.restart_at) = (wanted, restart_at);
                }
            });
        }
    }

    /// Continues the pending starts of an earlier server, once.
    pub(super) fn resume_pending(&self) {
        let now = self.panes.clock().wall_ms();
        let mut state = self.state();
        let Some(file) = state.effect.clone().filter(|_| state.driven) else { return };
        if !std::mem::take(&mut state.takes_over) {
            return;
        }
        for process in self.panes.processes.all() {
            let Some(entry) = process.declared.as_ref().filter(|_| !process.status.is_alive())
            else {
                continue;
            };
            let Some(definition) = file.processes.get(&entry.name) else { continue };
            let managed = state.managed.of(&entry.name);
            managed.wanted |= entry.wanted;
            if entry.restarted_after == process.runs && !process.runs.is_none() {
                managed.seen = process.runs;
                // The clock may have been set back meanwhile.
                let left = entry.restart_at.map(|at| Duration::from_millis(at.saturating_sub(now)));
                let left = left.map(|left| left.min(definition.restart.longest));
                managed.again_at = left.map(|left| Instant::now() + left);
            }
        }
        drop(state);
        self.notify();
    }
}

/// Whether a process that has ended, or was not started yet, is to be started without another request.
fn has_next_run(managed: &ManagedProcess, definition: &Definition, process: &Process) -> bool {
    if managed.is_coming() {
        return true;
    }
    if managed.changed.is_some() && !matches!(process.status, Status::Stopped | Status::Lost) {
        return true;
    }
    // It may have ended just now, before the driver decided what follows.
    let end = end_of(managed, process, managed.health.is_ending(process.runs));
    managed.seen < process.runs && matches!(next(&definition.restart, end), Next::Again { .. })
}
