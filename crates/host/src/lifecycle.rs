//! Starting, stopping and closing processes, together with the state that other parts have
//! about them: their agent, their timers, their declaration in the project file.

use std::sync::Arc;

use patterm_agents::{AgentError, Agents, Relaunch};
use patterm_panes::process::{Process, ProcessId};
use patterm_panes::{PaneError, Panes, StartExtra};
use patterm_project::declared::{Declared, DeclaredError};
use patterm_store::state::StateError;
use patterm_timers::Timers;
use rustix::process::Signal;
use thiserror::Error;

/// Why a process could not be started, stopped or closed.
#[derive(Debug, Error)]
pub(crate) enum LifecycleError {
    #[error(transparent)]
    Pane(#[from] PaneError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Declared(#[from] DeclaredError),
}

impl From<StateError> for LifecycleError {
    fn from(error: StateError) -> Self {
        Self::Pane(error.into())
    }
}

/// Starts, stops and closes the processes of a project.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) panes: Arc<Panes>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) declared: Arc<Declared>,
    pub(crate) timers: Arc<Timers>,
}

impl Lifecycle {
    /// Starts an ended process again, in its own entry. Also returns why an agent could not
    /// resume its conversation, if so.
    pub(crate) async fn start(
        &self,
        process: &Process,
    ) -> Result<(Process, Option<String>), LifecycleError> {
        if process.status.is_alive() {
            return Err(PaneError::AlreadyRunning(process.id.clone()).into());
        }
        let Relaunch { new_conversation, extra } = self.agents.prepare_again(process)?;
        if let Some(waiting) = self.declared.prepare(process)? {
            return Ok((waiting, new_conversation));
        }
        Ok((self.begin(&process.id, &extra).await?, new_conversation))
    }

    /// Begins a new run of a process.
    pub(crate) async fn begin(
        &self,
        id: &ProcessId,
        extra: &StartExtra,
    ) -> Result<Process, PaneError> {
        let started = self.panes.begin(id, extra).await;
        self.declared.notify();
        started
    }

    /// Ends a process: with this signal, or else as the project file says or with SIGTERM. Waits for the grace
    /// period, then kills everything. Returns once it has ended.
    pub(crate) async fn stop(
        &self,
        process: &Process,
        signal: Option<i32>,
    ) -> Result<Process, LifecycleError> {
        let waited = self.declared.cancel_start(process);
        let run = match self.panes.settled_run(process).await {
            // It was waiting to be started.
            Err(_) if waited => return Ok(self.panes.settled(&process.id)),
            running => running?,
        };
        run.set_stopping();
        let conversations = &self.agents.conversations;
        let _ = conversations.find(&run).await;
        let must_be_killed = conversations.must_be_killed(&run.id);
        let signal = if must_be_killed { Some(Signal::KILL.as_raw()) } else { signal };
        Ok(self.declared.end(&run, signal).await?)
    }

    /// Ends a process and everything it started, and removes it and all processes below it,
    /// youngest first. Returns the removed ids.
    pub(crate) async fn close(&self, process: &Process) -> Result<Vec<ProcessId>, LifecycleError> {
        let mut going = self.panes.processes.below(&process.id);
        going.push(process.clone());
        let mut closed = Vec::new();
        for process in going {
            // On a full disk this is repeated below, when there is space.
            let revoked = self.agents.identities.revoke(&process.id);
            self.panes.kill(&process.id).await?;
            self.agents.close(&process.id);
            // Remove the output first, to free space on a full disk.
            self.panes.remove_output(&process.id);
            if revoked.is_err() {
                self.agents.identities.revoke(&process.id)?;
            }
            self.declared.forget(&process);
            self.panes.forget(&process.id);
            self.timers.close(&process.id);
            closed.push(process.id);
        }
        Ok(closed)
    }
}
