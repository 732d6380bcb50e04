//! The state of declared processes beside their entries: dependencies, readiness, and pending
//! restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::watching::WatchRestarts;
use crate::project_file::{ProjectFile, ReadyWhen};
use patterm_panes::process::{Process, Status};

/// One declared process.
#[derive(Debug, Default)]
pub(super) struct ManagedProcess {
    /// It is to be started as soon as its dependencies are ready.
    pub(super) wanted: bool,
    /// When it is started again.
    pub(super) again_at: Option<Instant>,
    /// When it is restarted because watched files changed, and when the first of them did.
    pub(super) changed: Option<(Instant, Instant)>,
    /// Restarts for that reason.
    pub(super) watch_restarts: WatchRestarts,
    /// The last run whose end was handled.
    pub(super) seen: u64,
    /// The run whose readiness is being awaited.
    pub(super) awaited: u64,
    /// The run that is ready, or was.
    pub(super) ready: u64,
    /// The run that was not ready in time.
    pub(super) late: u64,
    /// Why it is not started, or not started again.
    pub(super) problem: Option<String>,
}

/// All of them, by their names in the file.
#[derive(Debug, Default)]
pub(super) struct ManagedProcesses(BTreeMap<String, ManagedProcess>);

/// Whether a dependency is ready.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Ready,
    Coming,
    Never(String),
}

/// Whether a process that is to be started may be started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum May {
    /// It may be started.
    Start,
    /// It waits for these.
    Wait(Vec<String>),
    /// It can never be started, for this reason.
    Never(String),
}

/// The status of a declared process.
#[derive(Debug, Default)]
pub struct DeclaredStatus {
    /// It is ready, as the file says.
    pub ready: bool,
    /// How long it is until it is started again.
    pub again_in: Option<Duration>,
    /// What must be ready before it is started.
    pub waits_for: Vec<String>,
    /// Why it is not started, not started again, or not ready.
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

    /// Marks a process and its missing dependencies as to be started.
    pub(super) fn want(
        &mut self,
        name: &str,
        file: &ProjectFile,
        entry: &dyn Fn(&str) -> Option<Process>,
    ) {
        let managed = self.of(name);
        managed.problem = None;
        if std::mem::replace(&mut managed.wanted, true) {
            return;
        }
        let needs = file.processes.get(name).map(|definition| definition.depends_on.clone());
        for other in needs.unwrap_or_default() {
            let there = |process: Process| {
                process.status.is_alive() || self.is_ready(&other, &process, file)
            };
            if !entry(&other).is_some_and(there) {
                self.want(&other, file, entry);
            }
        }
    }

    /// Postpones what is due for a process that is being started.
    pub(super) fn put_off(&mut self, name: &str, time: Duration) {
        let managed = self.of(name);
        managed.again_at = None;
        managed.changed = managed.changed.map(|(at, first)| (at.max(Instant::now() + time), first));
    }

    /// Forgets a process; its entry is a new one from here on.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Whether a process is ready, given its entry.
    pub(super) fn is_ready(&self, name: &str, process: &Process, file: &ProjectFile) -> bool {
        let Some(managed) = self.0.get(name).filter(|managed| managed.ready == process.runs) else {
            return false;
        };
        let lasting = file.processes.get(name).and_then(|definition| definition.ready.as_ref());
        let ends_well = process.exit.is_some_and(|exit| exit.code == Some(0));
        match lasting.map(|ready| &ready.when) {
            _ if managed.ready == 0 => false,
            Some(ReadyWhen::Exits) => !process.status.is_alive(),
            Some(_) => process.status.is_alive(),
            None => process.status.is_alive() || ends_well,
        }
    }

    fn need(&self, name: &str, process: Option<&Process>, file: &ProjectFile) -> Need {
        let Some(process) = process else { return Need::Never("has no entry".into()) };
        if self.is_ready(name, process, file) {
            return Need::Ready;
        }
        let managed = self.0.get(name);
        if managed.is_some_and(|managed| managed.wanted || managed.again_at.is_some()) {
            return Need::Coming;
        }
        if process.status.is_alive() {
            return match managed.is_some_and(|managed| managed.late == process.runs) {
                true => Need::Never("was not ready in time".into()),
                false => Need::Coming,
            };
        }
        // It may have ended a moment ago, and what follows is not decided yet.
        if managed.is_some_and(|managed| managed.seen < process.runs) {
            return Need::Coming;
        }
        Need::Never(match (process.status, process.exit) {
            (Status::Exited, Some(exit)) => match (exit.code, exit.signal) {
                (Some(code), _) => format!("ended with exit code {code}"),
                (_, Some(signal)) => format!("was ended by signal {signal}"),
                _ => "ended".into(),
            },
            (Status::Failed, _) => "could not be started".into(),
            _ => "does not run".into(),
        })
    }

    /// Whether a process may be started. `entry` finds the entry of a name.
    pub(super) fn may(
        &self,
        name: &str,
        file: &ProjectFile,
        entry: impl Fn(&str) -> Option<Process>,
    ) -> May {
        let Some(definition) = file.processes.get(name) else {
            return May::Never("the project file does not declare it any more".into());
        };
        let mut waits = Vec::new();
        for other in &definition.depends_on {
            match self.need(other, entry(other).as_ref(), file) {
                Need::Ready => {}
                Need::Coming => waits.push(other.clone()),
                Need::Never(why) => return May::Never(format!("it needs {other}, which {why}")),
            }
        }
        if waits.is_empty() { May::Start } else { May::Wait(waits) }
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
            problem: managed
                .problem
                .clone()
                .or_else(|| managed.watch_restarts.problem(Instant::now())),
        }
    }
}
