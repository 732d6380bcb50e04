//! How a process is stopped: as the project file says, or as any other process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::file_status::Declared;
use crate::project_file::Stop;
use patterm_panes::PaneError;
use patterm_panes::data_plane::{ProcessRun, RunProgress};
use patterm_panes::lifecycle::GRACE;
use patterm_panes::process::{Process, ProcessId};

/// The signal that ends a process if the file names no other.
const TERMINATE: i32 = 15;

impl Declared {
    /// Stops a declared process, or cancels its pending start.
    pub(super) async fn stop(&self, process: &Process) -> Result<(), PaneError> {
        let waited = self.cancel_start(process);
        let run = match self.panes.running(process) {
            // Its start was pending.
            Err(_) if waited => return Ok(()),
            running => running?,
        };
        run.set_stopping();
        self.end(&run, None).await.map(drop)
    }

    /// Ends a run: with this signal, or else as the project file says. What is left after the grace period is killed.
    /// Returns the entry once it is over.
    pub async fn end(
        &self,
        run: &Arc<ProcessRun>,
        signal: Option<i32>,
    ) -> Result<Process, PaneError> {
        let stop = self.stop_of(&run.id);
        let grace = stop.grace.unwrap_or(GRACE);
        match (&stop.command, signal) {
            (Some(argv), None) => self.end_by_command(run, argv, &stop, grace).await,
            _ => {
                let signal = signal.or(stop.signal).unwrap_or(TERMINATE);
                self.panes.end(run, signal, grace).await
            }
        }
    }

    /// Ends a run because the server ends: as the project file says, or else as a service manager does.
    pub async fn end_with_server(&self, run: &Arc<ProcessRun>, grace: Duration) {
        let stop = self.stop_of(&run.id);
        let asked = match (&stop.command, stop.signal) {
            (Some(argv), _) => self.end_by_command(run, argv, &stop, grace).await.map(drop),
            (None, signal) => {
                let failed = |source| PaneError::InitGone { id: run.id.clone(), source };
                let asked = run.pane.as_ref().map(|pane| match signal {
                    Some(signal) => pane.stop(signal, grace),
                    None => pane.end(grace),
                });
                asked.unwrap_or(Ok(())).map_err(failed)
            }
        };
        if let Err(error) = asked {
            tracing::warn!(id = %run.id, %error, "cannot ask a process to exit");
        }
    }

    /// The time that the project file gives a process to end, if it sets one.
    pub fn stop_grace(&self, id: &ProcessId) -> Option<Duration> {
        self.stop_of(id).grace
    }

    /// How the project file in effect says that a process is stopped.
    fn stop_of(&self, id: &ProcessId) -> Stop {
        let entry = self.panes.processes.get(id).and_then(|process| process.declared);
        let file = self.effect().unwrap_or_default();
        let definition = entry.and_then(|entry| file.processes.get(&entry.name).cloned());
        definition.map(|definition| definition.stop).unwrap_or_default()
    }

    /// Ends a run with the command that is meant for it. If that fails, it gets the signal.
    async fn end_by_command(
        &self,
        run: &Arc<ProcessRun>,
        argv: &[String],
        stop: &Stop,
        grace: Duration,
    ) -> Result<Process, PaneError> {
        let begun = Instant::now();
        // The init kills everything in time even if this server dies.
        self.panes.kill_after(run, grace)?;
        let process = self.panes.settled(&run.id);
        let Some(name) = process.declared.as_ref().map(|declared| declared.name.clone()) else {
            return self.panes.end(run, stop.signal.unwrap_or(TERMINATE), grace).await;
        };
        let is_first = std::mem::replace(&mut self.state().managed.of(&name).stopped, run.number)
            != run.number;
        if !is_first {
            // The command is running for another caller.
            return self.panes.ended(run, grace).await;
        }
        let signal = stop.signal.unwrap_or(TERMINATE);
        let outcome = self.panes.run_beside(&process, argv, grace).await;
        let left = || grace.saturating_sub(begun.elapsed());
        let Err(error) = outcome else {
            let is_over = timeout(left(), run.watch().wait_for(RunProgress::is_over)).await.is_ok();
            return match is_over {
                // The command asked the program to end, and nobody has asked what it leaves behind.
                true => self.panes.end(run, signal, left()).await,
                false => self.panes.ended(run, left()).await,
            };
        };
        // Without the command's output, which may contain secrets.
        let why = error.without_output();
        tracing::warn!(id = %run.id, why, "the stop command of a process failed");
        let ended = self.panes.end(run, signal, left()).await;
        let problem = format!("it was stopped, but its stop command {error}");
        self.state().managed.of(&name).problem = Some(problem);
        ended
    }
}
