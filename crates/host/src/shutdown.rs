//! The end of a server on purpose: every program is asked to end, all at the same time, and has a
//! grace time before what is left is killed. Whoever asked reads a report of how far it is.

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
use patterm_project::project_file::ProjectFile;
use patterm_store::limits::Limits;
use patterm_store::state;

/// How long programs have to end by themselves, unless it is said otherwise.
const GRACE: Duration = Duration::from_secs(5);

/// The longest grace time: longer than any database needs, and not for ever.
pub const LONGEST_GRACE: Duration = Duration::from_secs(3600);

/// The limit that sets the grace time, in the user's settings or a project file.
const GRACE_LIMIT: &str = "end_grace_seconds";

const REPORT_VERSION: u32 = 1;

/// The least time between two reports of how far the end is: many programs that end at the same time are
/// one report, and a client looks no more often.
const REPORT_PAUSE: Duration = Duration::from_millis(100);

/// How far the end of a server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport {
    /// The server's process id.
    pub pid: u32,
    /// The processes that have not ended yet.
    #[serde(default)]
    pub waiting: Vec<String>,
    /// What could not be ended: programs with their process ids.
    #[serde(default)]
    pub survivors: Vec<String>,
    /// Why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// This is the last report: everything was ended, but for what it names. Without it the server died
    /// before that.
    #[serde(default)]
    pub finished: bool,
}

/// How the server is to end.
#[derive(Debug)]
pub(crate) struct Shutdown {
    panes: Arc<Panes>,
    agents: Arc<Agents>,
    /// The user's settings.
    settings: Option<PathBuf>,
    /// The grace time that the project file sets.
    project_grace: Option<u64>,
    /// Where the report goes.
    report: PathBuf,
    /// The grace time that was asked for, or else was found in the settings then.
    grace: Mutex<Option<Duration>>,
    /// The last report was written; none that was begun before may replace it.
    finished: Mutex<bool>,
}

impl Shutdown {
    pub(crate) fn new(
        report: PathBuf,
        panes: Arc<Panes>,
        agents: Arc<Agents>,
        limits: &Limits,
        settings: Option<PathBuf>,
    ) -> Self {
        let project_grace = limits.end_grace_seconds;
        let (grace, finished) = Default::default();
        // What an earlier server left there names that one, and a client may still have to read it.
        Self { panes, agents, settings, project_grace, report, grace, finished }
    }

    fn write(&self, report: &EndReport) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *finished, report.finished) {
            return;
        }
        if let Err(error) = state::write(&self.report, REPORT_VERSION, report) {
            tracing::warn!(%error, "how far the end is cannot be told");
        }
    }

    /// Takes a person's request to end this server.
    pub(crate) fn request(&self, request: ShutdownRequest) -> ShutdownBegun {
        let asked = request.grace_ms.map(|grace| Duration::from_millis(grace).min(LONGEST_GRACE));
        let grace = asked.unwrap_or_else(|| self.grace_set());
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = Some(grace);
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        ShutdownBegun { report: Some(self.report.clone()), grace_ms }
    }

    /// The grace time that a trusted project file or the user's settings set.
    fn grace_set(&self) -> Duration {
        let of_the_user = || {
            let file = ProjectFile::of_the_user(self.settings.as_deref()?).ok()?;
            file.limits.get(GRACE_LIMIT).copied()
        };
        let set = || self.project_grace.or_else(of_the_user).map(Duration::from_secs);
        set().unwrap_or(GRACE).min(LONGEST_GRACE)
    }

    /// Asks everything that runs to end, waits for the grace time, and kills the rest. What cannot be
    /// killed is left to the keeper.
    pub(crate) async fn end_panes(self: Arc<Self>) {
        let asked = *self.grace.lock().unwrap_or_else(PoisonError::into_inner);
        let grace = asked.unwrap_or_else(|| self.grace_set());
        let mut waiting: BTreeMap<String, Arc<ProcessRun>> =
            self.panes.runs().into_iter().collect();
        waiting.retain(|_, run| run.pane.is_some() && !run.watch().borrow().empty);
        let mut ends = JoinSet::new();
        for (name, run) in &waiting {
            let at_once = grace.is_zero() || self.agents.conversations.must_be_killed(&run.id);
            let asked = run.pane.as_ref().map(|pane| match at_once {
                true => pane.kill(),
                false => pane.end(grace),
            });
            if let Some(Err(error)) = asked {
                tracing::warn!(id = %run.id, %error, "it cannot be asked to end");
            }
            let (name, mut progress) = (name.clone(), run.watch());
            ends.spawn(async move {
                let _ = progress.wait_for(|progress| progress.empty).await;
                name
            });
        }
        let all = async {
            while !ends.is_empty() {
                self.tell_waiting(&waiting).await;
                let next = tokio::time::Instant::now() + REPORT_PAUSE;
                // At least one has ended, and all that do until the next report.
                let mut ended = ends.join_next().await;
                while let Some(Ok(name)) = ended {
                    waiting.remove(&name);
                    let more = tokio::time::timeout_at(next, ends.join_next()).await;
                    ended = more.unwrap_or_default();
                }
            }
            self.tell_waiting(&waiting).await;
        };
        if tokio::time::timeout(grace + KILL_PATIENCE, all).await.is_err() {
            tracing::warn!("not everything has ended; the keeper ends the rest");
        }
    }

    /// Says what has not ended yet, from a thread that may wait for the disk.
    async fn tell_waiting(self: &Arc<Self>, waiting: &BTreeMap<String, Arc<ProcessRun>>) {
        let name = |run: &Arc<ProcessRun>| {
            let name = self.panes.processes.get(&run.id).map(|process| process.name);
            format!("{} ({})", run.id, name.unwrap_or_default())
        };
        let waiting = waiting.values().map(name).collect();
        let report = EndReport { pid: std::process::id(), waiting, ..EndReport::default() };
        let ending = self.clone();
        let _ = tokio::task::spawn_blocking(move || ending.write(&report)).await;
    }

    /// Says what came of it.
    pub(crate) fn tell_ended(&self, left: std::io::Result<Vec<Survivor>>) {
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
