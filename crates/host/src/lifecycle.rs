//! Starting, stopping and closing processes, with all that other parts know of them: the agent in a
//! process, its timers, what the project file says of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use patterm_agents::{AgentError, Agents, Relaunch};
use patterm_panes::process::{Process, ProcessId};
use patterm_panes::{PaneError, Panes};
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
    /// Starts a process that ended again, in its own entry. Says why too, where that is an agent that
    /// cannot go on where it was.
    pub(crate) async fn start(
        &self,
        process: &Process,
    ) -> Result<(Process, Option<String>), LifecycleError> {
        if process.status.is_alive() {
            return Err(PaneError::AlreadyRunning(process.id.clone()).into());
        }
        let Relaunch { anew, instructions } = self.agents.prepare_again(process)?;
        if let Some(waiting) = self.declared.prepare(process)? {
            return Ok((waiting, anew));
        }
        Ok((self.begin(&process.id, &instructions).await?, anew))
    }

    /// Begins a new run of a process; `instructions` are arguments for this one time.
    pub(crate) async fn begin(
        &self,
        id: &ProcessId,
        instructions: &[String],
    ) -> Result<Process, PaneError> {
        let started = self.panes.begin(id, instructions).await;
        self.declared.notify();
        started
    }

    /// Ends a process: the signal to its group, the grace time, then everything. Returns once it
    /// is over.
    pub(crate) async fn stop(
        &self,
        process: &Process,
        signal: i32,
    ) -> Result<Process, LifecycleError> {
        let waited = self.declared.cancel_start(process);
        let run = match self.panes.running(process) {
            // It would have been started soon.
            Err(_) if waited => return Ok(self.panes.settled(&process.id)),
            running => running?,
        };
        run.stopping.store(true, Ordering::Release);
        let conversations = &self.agents.conversations;
        let _ = conversations.find(&run).await;
        let must_be_killed = conversations.must_be_killed(&run.id);
        let signal = if must_be_killed { Signal::KILL.as_raw() } else { signal };
        Ok(self.panes.end(&run, signal).await?)
    }

    /// Ends a process with everything it ever started and removes it and all below it, youngest
    /// first. Returns the ids that are gone.
    pub(crate) async fn close(&self, process: &Process) -> Result<Vec<ProcessId>, LifecycleError> {
        let mut going = self.panes.processes.below(&process.id);
        going.push(process.clone());
        let mut closed = Vec::new();
        for process in going {
            // On a full disk it is tried again below, where there is room.
            let revoked = self.agents.identities.revoke(&process.id);
            self.panes.kill(&process.id).await?;
            self.agents.close(&process.id);
            // The output first: it makes room where the disk is full.
            self.panes.remove_output(&process.id);
            if revoked.is_err() {
                self.agents.identities.revoke(&process.id)?;
            }
            self.declared.forget(&process);
            self.panes.processes.forget(&process.id);
            self.timers.close(&process.id);
            closed.push(process.id);
        }
        Ok(closed)
    }
}
