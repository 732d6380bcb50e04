//! `patterm up` and `patterm down`: starting and stopping the processes that the project file declares.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use patterm_panes::process::{Process, Status};
use patterm_project::declared::{DeclaredError, FileStatus, GivenEnvironment, StartProgress};
use patterm_project::project_file::{ProjectFile, UnknownName};
use patterm_wire::declared::{DeclaredOutcome, OutcomeKind, Readiness, ReadinessState};
use patterm_wire::follow::ProcessStatus;
use thiserror::Error;

use crate::lifecycle::Lifecycle;

/// Why nothing can be started or stopped.
#[derive(Debug, Error)]
pub(crate) enum UpError {
    #[error("patterm.toml is not trusted; `patterm trust` shows what it declares and trusts it")]
    Untrusted,
    #[error("patterm.toml has errors: {0}")]
    Faulty(String),
    #[error("there is no patterm.toml; `patterm init` writes one")]
    Absent,
    #[error("patterm.toml declares no processes")]
    NothingDeclared,
    #[error(transparent)]
    Unknown(#[from] UnknownName),
}

impl Lifecycle {
    /// Starts declared processes that are not running, each after those that it depends on, with this environment
    /// if there is one. A failure does not affect the others.
    pub(crate) async fn up(
        &self,
        names: &[String],
        environment: Option<GivenEnvironment<'_>>,
    ) -> Result<Vec<DeclaredOutcome>, UpError> {
        self.declared.read_project_file();
        let file = self.declared.effect().unwrap_or_default();
        let mut outcomes = Vec::new();
        for name in self.select(&file, names)? {
            outcomes.push(self.up_one(name, environment).await);
        }
        Ok(outcomes)
    }

    /// Stops declared processes, each after those that depend on it.
    pub(crate) async fn down(&self, names: &[String]) -> Result<Vec<DeclaredOutcome>, UpError> {
        let file = self.declared.effect().unwrap_or_default();
        let mut left = self.select(&file, names)?;
        let mut outcomes = Vec::new();
        while !left.is_empty() {
            let is_needed = |name: &str| {
                let needs = |other: &&str| {
                    file.processes[*other].depends_on.iter().any(|needed| needed == name)
                };
                left.iter().any(needs)
            };
            let (later, now): (Vec<_>, Vec<_>) =
                left.iter().copied().partition(|name| is_needed(name));
            outcomes.extend(join_all(now.into_iter().map(|name| self.down_one(name))).await);
            left = later;
        }
        Ok(outcomes)
    }

    /// Waits until declared processes are ready or have failed, or until the time is over.
    pub(crate) async fn wait_until_ready(
        &self,
        names: &[String],
        timeout: Duration,
    ) -> Result<Vec<Readiness>, UpError> {
        let file = self.declared.effect().unwrap_or_default();
        let names = self.select(&file, names)?;
        let mut rounds = self.declared.rounds();
        let settled = async {
            loop {
                rounds.mark_unchanged();
                let is_pending =
                    |name: &&str| self.declared.progress(name).1 == StartProgress::Pending;
                // The driver ends only with the server.
                if !names.iter().any(is_pending) || rounds.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(timeout, settled).await;
        Ok(names.into_iter().map(|name| self.readiness(name)).collect())
    }

    fn readiness(&self, name: &str) -> Readiness {
        let (process, progress) = self.declared.progress(name);
        let process_id = process.as_ref().map(|process| process.id.to_string());
        let why = || {
            let process = process?;
            let status = self.declared.status(&process).unwrap_or_default();
            self.declared.why_not_running(&process).or(status.problem)
        };
        let (state, reason) = match progress {
            StartProgress::Ready => (ReadinessState::Ready, None),
            StartProgress::Pending => (ReadinessState::Pending, why()),
            StartProgress::Failed => (ReadinessState::Failed, why()),
        };
        let printed_by = (state == ReadinessState::Failed)
            .then(|| self.declared.cause(name).unwrap_or_else(|| name.to_owned()))
            .filter(|first| self.has_printed(first));
        Readiness { name: name.to_owned(), process_id, state, reason, printed_by }
    }

    /// Whether the last run of a declared process has printed something.
    fn has_printed(&self, name: &str) -> bool {
        let Some(process) = self.declared.declared_entry(name) else { return false };
        // A program that could not be started has a log of earlier runs at most.
        process.status != Status::Failed
            && self.panes.run_of(&process.id).is_some_and(|run| {
                run.number == process.runs && run.log.end() > process.run_offset.get()
            })
    }

    fn select<'f>(
        &self,
        file: &'f Arc<ProjectFile>,
        names: &[String],
    ) -> Result<Vec<&'f str>, UpError> {
        if file.processes.is_empty() {
            return Err(match self.declared.file_status() {
                FileStatus::Untrusted { .. } => UpError::Untrusted,
                FileStatus::Faulty { faults, .. } => UpError::Faulty(faults.join("; ")),
                FileStatus::Absent => UpError::Absent,
                FileStatus::Trusted { .. } => UpError::NothingDeclared,
            });
        }
        Ok(file.select(names)?)
    }

    async fn up_one(
        &self,
        name: &str,
        environment: Option<GivenEnvironment<'_>>,
    ) -> DeclaredOutcome {
        let before = self.declared.declared_entry(name);
        let waits = |process: &Process| self.declared.starts_after(process).is_some();
        if let Some(process) = before.filter(|process| process.status.is_alive() || waits(process))
        {
            return self.outcome(name, Some(&process), OutcomeKind::Unchanged);
        }
        match self.declared.start_declared(name, environment).await {
            Ok(process) if process.status == Status::Starting => {
                self.outcome(name, Some(&process), OutcomeKind::Waiting)
            }
            Ok(process) => self.outcome(name, Some(&process), OutcomeKind::Started),
            // The start of another process that depends on it has already started it.
            Err(DeclaredError::AlreadyRunning { .. }) => {
                self.outcome(name, None, OutcomeKind::Started)
            }
            Err(error) => {
                self.declared.note_refused(name, &error);
                self.failed(name, &error)
            }
        }
    }

    async fn down_one(&self, name: &str) -> DeclaredOutcome {
        let Some(process) = self.declared.declared_entry(name) else {
            return self.outcome(name, None, OutcomeKind::Unchanged);
        };
        if !process.status.is_alive() && self.declared.starts_after(&process).is_none() {
            self.declared.cancel_start(&process);
            return self.outcome(name, Some(&process), OutcomeKind::Unchanged);
        }
        match self.stop(&process, None).await {
            Ok(stopped) => self.outcome(name, Some(&stopped), OutcomeKind::Stopped),
            Err(error) => self.failed(name, &error),
        }
    }

    fn failed(&self, name: &str, error: &dyn std::error::Error) -> DeclaredOutcome {
        let error = Some(error.to_string());
        DeclaredOutcome { error, ..self.outcome(name, None, OutcomeKind::Failed) }
    }

    /// The outcome for a process; if it is `None`, its entry is looked up.
    fn outcome(
        &self,
        name: &str,
        process: Option<&Process>,
        outcome: OutcomeKind,
    ) -> DeclaredOutcome {
        let entry = self.declared.declared_entry(name);
        let waiting = entry.as_ref().and_then(|entry| self.declared.starts_after(entry));
        let status = process.or(entry.as_ref()).map_or(Status::Stopped, |process| process.status);
        let status = if waiting.is_some() { Status::Starting } else { status };
        DeclaredOutcome {
            name: name.to_owned(),
            process_id: process.or(entry.as_ref()).map(|process| process.id.to_string()),
            outcome,
            status: match status {
                Status::Starting => ProcessStatus::Starting,
                Status::Running => ProcessStatus::Running,
                Status::Exited => ProcessStatus::Exited,
                Status::Failed => ProcessStatus::Failed,
                Status::Stopped => ProcessStatus::Stopped,
                Status::Lost => ProcessStatus::Lost,
            },
            waiting_for: waiting.unwrap_or_default(),
            error: None,
        }
    }
}
