//! The next run of a process that is about to be started: it waits for its dependencies or for its next restart, or is
//! just being started.

use std::sync::Arc;

use crate::host::Host;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Process, RunNumber};

/// Whether the run that counts is still to come.
pub(super) fn is_to_come(host: &Host, process: &Process) -> bool {
    // A run is alive a moment before its output can be read.
    let is_behind = process.status.is_alive() && last_run(host, process) < process.runs;
    is_behind || host.declared.is_about_to_run(process)
}

/// Waits for the next run of a process for which [`is_to_come`] holds; `None` if it is not started after all.
pub(super) async fn begin(host: &Host, process: &Process) -> Option<Arc<ProcessRun>> {
    let before = last_run(host, process);
    let mut changes = host.panes.processes.changes();
    loop {
        changes.borrow_and_update();
        // Looked up before the run: a run that begins in between is found, or seen as still to come.
        let now = host.panes.processes.get(&process.id)?;
        let may_come = is_to_come(host, &now);
        let run = host.panes.run_of(&process.id).filter(|run| run.number > before);
        if let Some(run) = run {
            host.panes.data_plane.rebuilt(&run).await;
            return Some(run);
        }
        if !may_come || changes.changed().await.is_err() {
            return None;
        }
    }
}

/// The last run whose output can be read.
fn last_run(host: &Host, process: &Process) -> RunNumber {
    host.panes.run_of(&process.id).map_or(RunNumber::NONE, |run| run.number)
}
