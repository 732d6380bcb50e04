//! The processes of a project and the panes they run in.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{self, StateDir, StateError};
use tokio::sync::{Notify, mpsc};

use crate::data_plane::{DataPlane, Event, ProcessRun, Trouble};
use crate::environment;
use crate::keeper_client::KeeperClient;
use crate::left_behind::LeftBehind;
use crate::process::{ProcessId, Processes};

/// The processes of a project, their runs, and what holds and reads their terminals.
#[derive(Debug)]
pub struct Panes {
    /// The process table.
    pub processes: Processes,
    /// Holds the terminals.
    pub keeper: KeeperClient,
    /// Reads them.
    pub data_plane: DataPlane,
    /// What every program finds in its environment.
    pub environment: BTreeMap<String, String>,
    pub(crate) project: Project,
    pub(crate) state: StateDir,
    pub(crate) limits: Limits,
    /// What may run on outside of any pane.
    pub(crate) left_behind: LeftBehind,
    /// Some room on the disk is kept for state.
    reserved: AtomicBool,
    runs: RwLock<HashMap<ProcessId, Arc<ProcessRun>>>,
    /// Runs that are not observed yet.
    starting: Mutex<Vec<Arc<ProcessRun>>>,
    started: Notify,
}

impl Panes {
    /// Reads the process table and starts the data plane; returns what it will report. `boot` names
    /// this run of the machine.
    pub fn load(
        project: &Project,
        state: &StateDir,
        limits: &Limits,
        keeper: KeeperClient,
        boot: &str,
    ) -> Result<(Self, mpsc::Receiver<Event>), StateError> {
        let (data_plane, events) = DataPlane::start(limits.history_bytes)
            .map_err(state::failed("start threads for", project.root()))?;
        let panes = Self {
            processes: Processes::load(state, boot)?,
            keeper,
            data_plane,
            environment: environment::of_this_process(),
            project: project.clone(),
            state: state.clone(),
            limits: limits.clone(),
            left_behind: LeftBehind::default(),
            reserved: AtomicBool::new(true),
            runs: RwLock::default(),
            starting: Mutex::default(),
            started: Notify::new(),
        };
        Ok((panes, events))
    }

    /// The present or last run of a process.
    pub fn run_of(&self, id: &ProcessId) -> Option<Arc<ProcessRun>> {
        self.runs.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// All of them, by the names of their panes.
    pub fn runs(&self) -> Vec<(String, Arc<ProcessRun>)> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        runs.values().map(|run| (pane_name(&run.id, run.number), run.clone())).collect()
    }

    /// The processes whose init is one of these.
    pub fn panes_with_inits(&self, pids: &[i32]) -> Vec<ProcessId> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let is_among = |run: &&Arc<ProcessRun>| run.init().is_some_and(|init| pids.contains(&init));
        runs.values().filter(is_among).map(|run| run.id.clone()).collect()
    }

    /// When the first pane of agents began of which something may run on outside of any pane, in
    /// milliseconds since 1970; `None` if there is none.
    pub fn left_behind_since(&self) -> Option<u64> {
        self.look_for_left_behind();
        self.left_behind.since()
    }

    /// Notes panes of agents that left something behind.
    fn look_for_left_behind(&self) {
        for process in self.panes_left_behind().iter().filter_map(|id| self.processes.get(id)) {
            self.left_behind.note(&process);
        }
    }

    /// Those of which something may run on outside of any pane.
    fn panes_left_behind(&self) -> Vec<ProcessId> {
        let keeper = self.keeper.live_pid();
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let left = runs.values().filter(|run| run.is_left_behind(keeper));
        left.map(|run| run.id.clone()).collect()
    }

    pub(crate) fn set_run(&self, run: Arc<ProcessRun>) -> Option<Arc<ProcessRun>> {
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

    /// Waits for runs that have begun; each is returned once.
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

    /// Keeps some room on the disk for state.
    pub async fn keep_reserve(&self) {
        let told = |whole| {
            if self.reserved.swap(whole, Ordering::AcqRel) != whole {
                self.processes.notify();
            }
        };
        reserve::keep(self.state.path(), told).await;
    }

    /// What is wrong with the disk, where somebody should know.
    pub fn disk_problem(&self) -> Option<String> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let full = runs.values().any(|run| run.trouble() == Some(Trouble::DiskFull));
        let folder = self.state.path().display();
        (full || !self.reserved.load(Ordering::Acquire)).then(|| {
            format!(
                "the disk of {folder} is full: the newest output takes the place of the oldest, and \
                 what is new beside it (processes, timers, messages, scratchpads) is refused; make room"
            )
        })
    }

    /// What the versions of a process's next screen begin above.
    pub(crate) fn version_base(&self, id: &ProcessId) -> u64 {
        let before = self.run_of(id).map_or(0, |run| run.screen().version() + 1);
        self.processes.version_base().max(before)
    }
}

/// The name of a run's pane at the keeper.
pub(crate) fn pane_name(id: &ProcessId, run: u64) -> String {
    format!("{id}.{run}")
}
