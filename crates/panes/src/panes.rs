//! The processes of a project and the panes they run in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use patterm_events::EventLog;
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{self, StateDir, StateError};
use tokio::sync::{Notify, mpsc};

use crate::data_plane::{DataPlane, Event, ProcessRun, Trouble};
use crate::environments::Environments;
use crate::git_traces::GitTraces;
use crate::keeper_client::KeeperClient;
use crate::left_behind::LeftBehind;
use crate::process::{ProcessId, Processes, RunNumber};
use crate::side_panes::SidePanes;

/// The processes of a project, their runs, and the keeper and data plane that serve their terminals.
#[derive(Debug)]
pub struct Panes {
    /// The process table.
    pub processes: Processes,
    /// Holds the terminals.
    pub keeper: KeeperClient,
    /// Reads them.
    pub data_plane: DataPlane,
    /// The environments that processes are started with.
    pub environments: Environments,
    /// Where git writes traces of its commands.
    pub git_traces: GitTraces,
    pub(crate) project: Project,
    pub(crate) state: StateDir,
    pub(crate) limits: Limits,
    /// Panes whose processes may run outside of any pane.
    pub(crate) left_behind: LeftBehind,
    /// Where events are recorded.
    events: EventLog,
    /// For times that are stored.
    pub(crate) clock: Clock,
    /// Counts commands beside processes, for the names of their panes.
    pub(crate) side_commands: AtomicU64,
    /// The panes of commands that run beside processes.
    pub(crate) side_panes: SidePanes,
    /// Some space on disk is reserved for state.
    reserved: AtomicBool,
    runs: RwLock<HashMap<ProcessId, Arc<ProcessRun>>>,
    /// Runs that are not observed yet.
    starting: Mutex<Vec<Arc<ProcessRun>>>,
    started: Notify,
}

impl Panes {
    /// Reads the process table and starts the data plane; returns the events that it will report.
    pub fn load(
        project: &Project,
        state: &StateDir,
        limits: &Limits,
        keeper: KeeperClient,
        clock: Clock,
    ) -> Result<(Self, mpsc::Receiver<Event>), StateError> {
        let (data_plane, events) = DataPlane::start(limits.history_bytes, clock.clone())
            .map_err(state::failed("start threads for", project.root()))?;
        let panes = Self {
            processes: Processes::load(state, &clock.now())?,
            keeper,
            data_plane,
            environments: Environments::new(state),
            git_traces: GitTraces::new(state),
            project: project.clone(),
            state: state.clone(),
            limits: limits.clone(),
            left_behind: LeftBehind::default(),
            events: EventLog::none(),
            clock,
            side_commands: AtomicU64::new(0),
            side_panes: SidePanes::default(),
            reserved: AtomicBool::new(true),
            runs: RwLock::default(),
            starting: Mutex::default(),
            started: Notify::new(),
        };
        Ok((panes, events))
    }

    /// Records what happens to processes as events.
    #[must_use]
    pub fn with_events(self, events: EventLog) -> Self {
        Self { processes: self.processes.with_events(events.clone()), events, ..self }
    }

    /// The log of the project's events.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// The clock for times that are stored.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The current or last run of a process.
    pub fn run_of(&self, id: &ProcessId) -> Option<Arc<ProcessRun>> {
        self.runs.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// The current or last runs of all processes, with the names of their panes.
    pub fn runs(&self) -> Vec<(String, Arc<ProcessRun>)> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        runs.values().map(|run| (pane_name(&run.id, run.number), run.clone())).collect()
    }

    /// The processes whose init is one of these, or the init of a command that runs beside them.
    pub fn panes_with_inits(&self, pids: &[i32]) -> Vec<ProcessId> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let is_among = |run: &&Arc<ProcessRun>| run.init().is_some_and(|init| pids.contains(&init));
        let mut panes: Vec<_> = runs.values().filter(is_among).map(|run| run.id.clone()).collect();
        panes.extend(self.side_panes.with_inits(pids));
        panes
    }

    /// Whether one of these is the init of a hook's command.
    pub fn is_of_hook(&self, pids: &[i32]) -> bool {
        self.side_panes.is_of_hook(pids)
    }

    /// When the first pane of agents started of which processes may still run outside of any pane, in milliseconds
    /// since 1970; `None` if there is none.
    pub fn left_behind_since(&self) -> Option<u64> {
        self.look_for_left_behind();
        self.left_behind.since()
    }

    /// Records panes of agents that left processes behind.
    fn look_for_left_behind(&self) {
        for process in self.panes_left_behind().iter().filter_map(|id| self.processes.get(id)) {
            self.left_behind.note(&process);
        }
    }

    /// The processes of which something may still run outside of any pane.
    fn panes_left_behind(&self) -> Vec<ProcessId> {
        let keeper = self.keeper.live_pid();
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let left = runs.values().filter(|run| run.is_left_behind(keeper));
        left.map(|run| run.id.clone()).collect()
    }

    /// Makes a run the current one of its process; returns the previous one.
    pub fn set_run(&self, run: Arc<ProcessRun>) -> Option<Arc<ProcessRun>> {
        self.data_plane.count(&run);
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).push(run.clone());
        self.started.notify_one();
        self.look_for_left_behind();
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        runs.insert(run.id.clone(), run)
    }

    pub(crate) fn take_run(&self, id: &ProcessId) -> Option<Arc<ProcessRun>> {
        self.look_for_left_behind();
        self.runs.write().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Waits for new runs; each is returned once.
    pub async fn next_started(&self) -> Vec<Arc<ProcessRun>> {
        loop {
            let starting =
                std::mem::take(&mut *self.starting.lock().unwrap_or_else(PoisonError::into_inner));
            if !starting.is_empty() {
                return starting;
            }
            self.started.notified().await;
        }
    }

    /// Keeps some space on disk reserved for state.
    pub async fn keep_reserve(&self) {
        let report = |whole| {
            if self.reserved.swap(whole, Ordering::AcqRel) != whole {
                self.processes.notify();
            }
        };
        reserve::keep(self.state.path(), report).await;
    }

    /// A problem with the disk that users should know about.
    pub fn disk_problem(&self) -> Option<String> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let full = runs.values().any(|run| run.trouble() == Some(Trouble::DiskFull));
        let folder = self.state.path().display();
        (full || !self.reserved.load(Ordering::Acquire)).then(|| {
            format!(
                "the disk of {folder} is full: new output replaces the oldest, and new processes, \
                 timers, messages and scratchpads are refused; free some space"
            )
        })
    }

    /// The versions of a process's next screen start above this number.
    pub(crate) fn version_base(&self, id: &ProcessId) -> u64 {
        let before = self.run_of(id).map_or(0, |run| run.screen().version() + 1);
        self.processes.version_base().max(before)
    }
}

/// The keeper's name of a run's pane.
pub(crate) fn pane_name(id: &ProcessId, run: RunNumber) -> String {
    format!("{id}.{run}")
}
