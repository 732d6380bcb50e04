//! Shutting a server down: every program is asked to exit, all at the same time, and those left
//! after the grace period are killed. A report shows the progress to the client that asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use patterm_keeper::Survivor;
use patterm_wire::requests::{ShutdownBegun, ShutdownRequest};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use patterm_agents::Agents;
use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::lifecycle::KILL_PATIENCE;
use patterm_panes::process::ProcessId;
use patterm_project::declared::Declared;
use patterm_project::project_file::ProjectFile;
use patterm_store::limits::Limits;
use patterm_store::state;

/// The default grace period of programs.
const GRACE: Duration = Duration::from_secs(5);

/// The longest grace period: longer than any database needs.
pub const LONGEST_GRACE: Duration = Duration::from_secs(3600);

/// The limit that sets the grace period, in the user's settings or a project file.
const GRACE_LIMIT: &str = "end_grace_seconds";

const REPORT_VERSION: u32 = 1;

/// The minimum time between two progress reports: many programs that exit together make one
/// report, and a client does not look more often.
const REPORT_PAUSE: Duration = Duration::from_millis(100);

/// The progress of a shutdown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport {
    /// The server's process id.
    pub pid: u32,
    /// The processes that have not exited yet.
    #[serde(default)]
    pub waiting: Vec<String>,
    /// The programs that could not be ended, with their process ids.
    #[serde(default)]
    pub survivors: Vec<String>,
    /// Why the survivors are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Whether this is the last report: everything has ended except the survivors. Without
    /// it, the server died earlier.
    #[serde(default)]
    pub finished: bool,
}

/// How the server shuts down.
#[derive(Debug)]
pub(crate) struct Shutdown {
    panes: Arc<Panes>,
    agents: Arc<Agents>,
    declared: Arc<Declared>,
    /// The user's settings.
    settings: Option<PathBuf>,
    /// The grace period of the project file.
    project_grace: Option<u64>,
    /// The file for the report.
    report: PathBuf,
    /// The grace period that a person requested.
    grace: Mutex<Option<Grace>>,
    /// Whether the last report was written; no earlier one may replace it.
    finished: Mutex<bool>,
}

/// How long programs may take to exit.
#[derive(Debug, Clone, Copy)]
struct Grace {
    /// What a person has requested for all of them.
    requested: Option<Duration>,
    /// The default, from the settings at the time of the request.
    default: Duration,
}

impl Grace {
    /// The time for one process: the project file may set its own.
    fn of(self, id: &ProcessId, declared: &Declared) -> Duration {
        self.requested.or_else(|| declared.stop_grace(id)).unwrap_or(self.default)
    }
}

impl Shutdown {
    pub(crate) fn new(
        report: PathBuf,
        panes: Arc<Panes>,
        agents: Arc<Agents>,
        declared: Arc<Declared>,
        limits: &Limits,
        settings: Option<PathBuf>,
    ) -> Self {
        let project_grace = limits.end_grace_seconds;
        let (grace, finished) = Default::default();
        // A report of an earlier server stays: it has that server's pid, and a client
        // may still read it.
        Self { panes, agents, declared, settings, project_grace, report, grace, finished }
    }

    fn write(&self, report: &EndReport) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *finished, report.finished) {
            return;
        }
        if let Err(error) = state::write(&self.report, REPORT_VERSION, report) {
            tracing::warn!(%error, "cannot write the shutdown report");
        }
    }

    /// Accepts a person's request to shut down.
    pub(crate) fn request(&self, request: ShutdownRequest) -> ShutdownBegun {
        let asked = request.grace_ms.map(|grace| Duration::from_millis(grace).min(LONGEST_GRACE));
        let grace = Grace { requested: asked, default: self.grace_set() };
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = Some(grace);
        let longest = self.longest(grace, self.panes.runs().iter().map(|(_, run)| run));
        let grace_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        ShutdownBegun { report: Some(self.report.clone()), grace_ms }
    }

    /// The grace period of a trusted project file, or else of the user's settings.
    fn grace_set(&self) -> Duration {
        let of_the_user = || {
            let file = ProjectFile::of_the_user(self.settings.as_deref()?).ok()?;
            file.limits.get(GRACE_LIMIT).copied()
        };
        let set = || self.project_grace.or_else(of_the_user).map(Duration::from_secs);
        set().unwrap_or(GRACE).min(LONGEST_GRACE)
    }

    /// The longest grace period of these runs.
    fn longest<'r>(
        &self,
        grace: Grace,
        runs: impl Iterator<Item = &'r Arc<ProcessRun>>,
    ) -> Duration {
        let first = grace.requested.unwrap_or(grace.default);
        let running = runs.filter(|run| run.pane.is_some() && !run.watch().borrow().empty);
        running.map(|run| grace.of(&run.id, &self.declared)).fold(first, Duration::max)
    }

    /// Asks all programs to exit, waits for the grace period, and kills the rest. Programs
    /// that cannot be killed are left to the keeper.
    pub(crate) async fn end_panes(self: Arc<Self>) {
        let asked = *self.grace.lock().unwrap_or_else(PoisonError::into_inner);
        let grace = asked.unwrap_or_else(|| Grace { requested: None, default: self.grace_set() });
        let mut waiting: BTreeMap<String, Arc<ProcessRun>> =
            self.panes.runs().into_iter().collect();
        waiting.retain(|_, run| run.pane.is_some() && !run.watch().borrow().empty);
        let longest = self.longest(grace, waiting.values());
        let mut ends = JoinSet::new();
        for (name, run) in &waiting {
            let grace = grace.of(&run.id, &self.declared);
            if grace.is_zero() || self.agents.conversations.must_be_killed(&run.id) {
                if let Some(Err(error)) = run.pane.as_ref().map(|pane| pane.kill()) {
                    tracing::warn!(id = %run.id, %error, "cannot kill a process");
                }
            } else {
                let (declared, run) = (self.declared.clone(), run.clone());
                tokio::spawn(async move { declared.end_with_server(&run, grace).await });
            }
            let (name, mut progress) = (name.clone(), run.watch());
            ends.spawn(async move {
                let _ = progress.wait_for(|progress| progress.empty).await;
                name
            });
        }
        let all = async {
            while !ends.is_empty() {
                self.report_waiting(&waiting).await;
                let next = tokio::time::Instant::now() + REPORT_PAUSE;
                // Wait for one exit, then collect all others until the next report.
                let mut ended = ends.join_next().await;
                while let Some(Ok(name)) = ended {
                    waiting.remove(&name);
                    let more = tokio::time::timeout_at(next, ends.join_next()).await;
                    ended = more.unwrap_or_default();
                }
            }
            self.report_waiting(&waiting).await;
        };
        if tokio::time::timeout(longest + KILL_PATIENCE, all).await.is_err() {
            tracing::warn!("some programs still run; leaving them to the keeper");
        }
    }

    /// Reports the processes that have not exited, on a thread that may block on the disk.
    async fn report_waiting(self: &Arc<Self>, waiting: &BTreeMap<String, Arc<ProcessRun>>) {
        let name = |run: &Arc<ProcessRun>| {
            let name = self.panes.processes.get(&run.id).map(|process| process.name);
            format!("{} ({})", run.id, name.unwrap_or_default())
        };
        let waiting = waiting.values().map(name).collect();
        let report = EndReport { pid: std::process::id(), waiting, ..EndReport::default() };
        let ending = self.clone();
        let _ = tokio::task::spawn_blocking(move || ending.write(&report)).await;
    }

    /// Writes the last report.
    pub(crate) fn report_ended(&self, left: std::io::Result<Vec<Survivor>>) {
        let pid = std::process::id();
        let mut report = EndReport { pid, finished: true, ..EndReport::default() };
        match left {
            Ok(left) if left.is_empty() => {}
            Ok(left) => {
                tracing::error!(?left, "some programs could not be ended");
                let survivor = |left: &Survivor| format!("{} (pid {})", left.name, left.pid);
                report.survivors = left.iter().map(survivor).collect();
            }
            Err(error) => {
                tracing::error!(%error, "the keeper did not end");
                report.fault = Some(error.to_string());
            }
        }
        self.write(&report);
    }
}
