//! The state of declared processes that their entries do not contain: dependencies, readiness, and
//! pending restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::health::{Health, RunHealth};
use super::listeners::Listeners;
use super::watching::WatchRestarts;
use crate::project_file::{Policy, ProjectFile, ReadyWhen};
use patterm_panes::process::{Process, RunNumber, Status};

/// A declared process.
#[derive(Debug, Default)]
pub(super) struct ManagedProcess {
    /// It starts as soon as its dependencies are ready.
    pub(super) wanted: bool,
    /// When its next restart is due.
    pub(super) again_at: Option<Instant>,
    /// The number of requests that are ending it now to start it again.
    pub(super) restarting: u32,
    /// When to restart it because watched files changed, and when the first of them changed.
    pub(super) changed: Option<(Instant, Instant)>,
    /// Restarts for that reason.
    pub(super) watch_restarts: WatchRestarts,
    /// The last run whose end was handled.
    pub(super) seen: RunNumber,
    /// The run that is being watched for readiness.
    pub(super) awaited: RunNumber,
    /// The run that is ready, or was.
    pub(super) ready: RunNumber,
    /// The run that was not ready in time.
    pub(super) late: RunNumber,
    /// The run whose health is being checked.
    pub(super) checked: RunNumber,
    /// The health of the current or last run.
    pub(super) health: RunHealth,
    /// The run for which the stop command was started.
    pub(super) stopped: RunNumber,
    /// Why it is not started or not restarted.
    pub(super) problem: Option<String>,
    /// Who listens at its port.
    pub(super) listeners: Listeners,
    /// Its last requested start did not happen, so the run before it no longer counts.
    pub(super) refused: Option<Refusal>,
}

/// Why a requested start did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What goes after the name of the process: "needs db, which ended with exit code 1".
    pub(super) why: String,
    /// The process that failed first, if it is another one.
    pub(super) cause: Option<String>,
}

impl Refusal {
    /// A request that was withdrawn before the process could be started.
    pub(super) fn cancelled() -> Self {
        Self { why: "was stopped before it could be started".into(), cause: None }
    }

    /// The reason as a sentence about the process itself.
    pub(super) fn sentence(&self) -> String {
        format!("it {}", self.why)
    }
}

impl ManagedProcess {
    /// Whether it is to be started, now or later.
    pub(super) fn is_coming(&self) -> bool {
        self.wanted || self.again_at.is_some() || self.restarting > 0
    }
}

/// All declared processes, by name.
#[derive(Debug, Default)]
pub(super) struct ManagedProcesses(BTreeMap<String, ManagedProcess>);

/// Whether a dependency is ready.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Ready,
    Coming,
    Never(String),
}

/// Whether a pending start may happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum May {
    /// It may be started.
    Start,
    /// It waits for these processes.
    Wait(Vec<String>),
    /// It can never be started, for this reason.
    Never(Refusal),
}

/// How far the start of a declared process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartProgress {
    /// It is ready, and healthy if that is checked.
    Ready,
    /// It may become ready.
    Pending,
    /// It does not become ready by itself.
    Failed,
}

/// The status of a declared process.
#[derive(Debug, Default)]
pub struct DeclaredStatus {
    /// It is ready, as the file defines it.
    pub ready: bool,
    /// Its health, if the file says how to check it and it was checked.
    pub health: Option<Health>,
    /// The time until it is restarted.
    pub again_in: Option<Duration>,
    /// The processes that must be ready before it starts.
    pub waits_for: Vec<String>,
    /// Why it is not started, not restarted, not ready or not healthy.
    pub problem: Option<String>,
}

impl ManagedProcesses {
    pub(super) fn of(&mut self, name: &str) -> &mut ManagedProcess {
        self.0.entry(name.to_owned()).or_default()
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| keep(name));
    }

    /// When the next restart is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let times = self
            .0
            .values()
            .flat_map(|managed| [managed.again_at, managed.changed.map(|(at, _)| at)]);
        times.flatten().min()
    }

    /// Whether a process is to be started, now or later.
    pub(super) fn has_pending_start(&self) -> bool {
        self.next_at().is_some() || self.0.values().any(|managed| managed.wanted)
    }

    /// Requests the start of a process and of its dependencies that are not running.
    pub(super) fn want(
        &mut self,
        name: &str,
        file: &ProjectFile,
        entry: &dyn Fn(&str) -> Option<Process>,
    ) {
        let managed = self.of(name);
        (managed.problem, managed.refused) = (None, None);
        if std::mem::replace(&mut managed.wanted, true) {
            return;
        }
        let needs = file.processes.get(name).map(|definition| definition.depends_on.clone());
        for other in needs.unwrap_or_default() {
            let is_up = |process: Process| {
                process.status.is_alive() || self.is_ready(&other, &process, file)
            };
            if !entry(&other).is_some_and(is_up) {
                self.want(&other, file, entry);
            }
        }
    }

    /// Postpones decisions about a process that is being started.
    pub(super) fn put_off(&mut self, name: &str, time: Duration) {
        let managed = self.of(name);
        managed.again_at = None;
        managed.changed = managed.changed.map(|(at, first)| (at.max(Instant::now() + time), first));
    }

    /// Forgets a process: from now on it has a new entry.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Whether a process is ready, given its entry.
    pub(super) fn is_ready(&self, name: &str, process: &Process, file: &ProjectFile) -> bool {
        let counts =
            |managed: &&ManagedProcess| managed.ready == process.runs && managed.refused.is_none();
        let Some(managed) = self.0.get(name).filter(counts) else { return false };
        if managed.health.health(process.runs) == Some(Health::Unhealthy) {
            return false;
        }
        let lasting = file.processes.get(name).and_then(|definition| definition.ready.as_ref());
        let ends_well = process.exit.is_some_and(|exit| exit.code == Some(0));
        match lasting.map(|ready| &ready.when) {
            _ if managed.ready == RunNumber::NONE => false,
            Some(ReadyWhen::Exits) => !process.status.is_alive(),
            Some(_) => process.status.is_alive(),
            None => process.status.is_alive() || (process.status == Status::Exited && ends_well),
        }
    }

    fn need(&self, name: &str, process: Option<&Process>, file: &ProjectFile) -> Need {
        let Some(process) = process else { return Need::Never("has no entry".into()) };
        let managed = self.0.get(name);
        // What counts is its next run, even if the last one has done what it was needed for.
        if managed.is_some_and(ManagedProcess::is_coming) && !process.status.is_alive() {
            return Need::Coming;
        }
        if self.is_ready(name, process, file) {
            return Need::Ready;
        }
        if process.status.is_alive() {
            return match managed.is_some_and(|managed| managed.late == process.runs) {
                true => Need::Never("was not ready in time".into()),
                false => Need::Coming,
            };
        }
        if let Some(refusal) = managed.and_then(|managed| managed.refused.as_ref()) {
            return Need::Never(refusal.why.clone());
        }
        // It may have ended just now, before the driver decided what follows.
        if managed.is_some_and(|managed| managed.seen < process.runs) {
            return Need::Coming;
        }
        Need::Never(match (process.status, process.exit) {
            (Status::Exited, Some(exit)) => match (exit.code, exit.signal) {
                (Some(code), _) => format!("ended with exit code {code}"),
                (_, Some(signal)) => format!("was killed by signal {signal}"),
                _ => "ended".into(),
            },
            (Status::Failed, _) => "could not be started".into(),
            _ => "is not running".into(),
        })
    }

    /// How far the start of a process is.
    pub(super) fn progress(
        &self,
        name: &str,
        process: &Process,
        file: &ProjectFile,
    ) -> StartProgress {
        let definition = file.processes.get(name);
        let health = self.0.get(name).map(|managed| &managed.health);
        match self.need(name, Some(process), file) {
            Need::Ready => {
                let is_checked = definition.is_some_and(|definition| definition.healthy.is_some());
                let is_known = health.is_some_and(|health| health.health(process.runs).is_some());
                match is_checked && !is_known && process.status.is_alive() {
                    true => StartProgress::Pending,
                    false => StartProgress::Ready,
                }
            }
            Need::Coming => {
                let policy =
                    definition.map_or(Policy::Never, |definition| definition.restart.policy);
                match health.is_some_and(|health| health.stays_unhealthy(process.runs, policy)) {
                    true => StartProgress::Failed,
                    false => StartProgress::Pending,
                }
            }
            Need::Never(_) => StartProgress::Failed,
        }
    }

    /// Whether a process may be started. `entry` finds the entry of a name.
    pub(super) fn may(
        &self,
        name: &str,
        file: &ProjectFile,
        entry: impl Fn(&str) -> Option<Process>,
    ) -> May {
        let Some(definition) = file.processes.get(name) else {
            let why = "is no longer declared by the project file".into();
            return May::Never(Refusal { why, cause: None });
        };
        let mut waits = Vec::new();
        for other in &definition.depends_on {
            match self.need(other, entry(other).as_ref(), file) {
                Need::Ready => {}
                Need::Coming => waits.push(other.clone()),
                Need::Never(why) => {
                    let why = format!("needs {other}, which {why}");
                    let cause = self.cause(other).unwrap_or(other).to_owned();
                    return May::Never(Refusal { why, cause: Some(cause) });
                }
            }
        }
        if waits.is_empty() { May::Start } else { May::Wait(waits) }
    }

    /// The process whose failure kept this one from being started.
    pub(super) fn cause(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.refused.as_ref()?.cause.as_deref()
    }

    /// The status of a process.
    pub(super) fn status(
        &self,
        name: &str,
        process: &Process,
        file: &ProjectFile,
        entry: impl Fn(&str) -> Option<Process>,
    ) -> DeclaredStatus {
        let Some(managed) = self.0.get(name) else { return DeclaredStatus::default() };
        let waits_for = match managed.wanted.then(|| self.may(name, file, entry)) {
            Some(May::Wait(others)) => others,
            _ => Vec::new(),
        };
        DeclaredStatus {
            ready: self.is_ready(name, process, file),
            again_in: managed.again_at.map(|at| at.saturating_duration_since(Instant::now())),
            waits_for,
            health: managed.health.health(process.runs).filter(|_| process.status.is_alive()),
            problem: managed
                .problem
                .clone()
                .or_else(|| managed.refused.as_ref().map(Refusal::sentence))
                .or_else(|| managed.health.problem(process.runs))
                .or_else(|| managed.watch_restarts.problem(Instant::now())),
        }
    }
}
