//! Folders into which git writes traces of its commands, one for each run: who made a commit is known from the pane that
//! its trace comes from. They are in the state folder, so that a commit that is made while there is no server is found.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use patterm_git::{MOST_FILES, TARGET_VARIABLE, UsersTargets};
use patterm_keeper::Program;
use patterm_store::private::PrivateDir;
use patterm_store::state::StateDir;
use tokio::time::Instant;

use crate::environment::{MOST_TRACES_VARIABLE, OWN_TRACES_VARIABLE};
use crate::panes::Panes;
use crate::process::{Process, ProcessId, RunNumber};

/// The folder of the folders, in the state folder.
const FOLDER: &str = "git";

/// For how long the answer to "does the user have a target" holds: as long as it takes to start a project.
const ANSWER_HOLDS: Duration = Duration::from_secs(5);

/// The folders of the runs.
#[derive(Debug)]
pub struct GitTraces {
    folder: PathBuf,
    users: UsersTargets,
}

/// A run that git writes traces for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TracedRun {
    /// The process.
    pub id: ProcessId,
    /// Its run.
    pub run: RunNumber,
}

impl TracedRun {
    fn of(name: &str) -> Option<Self> {
        let (id, run) = name.split_once('.')?;
        Some(Self { id: ProcessId::of(id), run: RunNumber::new(run.parse().ok()?) })
    }
}

impl GitTraces {
    pub(crate) fn new(state: &StateDir) -> Self {
        Self { folder: state.file(FOLDER), users: UsersTargets::new(ANSWER_HOLDS) }
    }

    /// The folder that contains those of all runs.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The folder of a run.
    pub fn of(&self, run: &TracedRun) -> PathBuf {
        self.folder.join(format!("{}.{}", run.id, run.run))
    }

    /// The runs that have a folder.
    pub fn runs(&self) -> Vec<TracedRun> {
        let names = PrivateDir::open(&self.folder).map(|folder| folder.names());
        let names = names.ok().and_then(Result::ok).unwrap_or_default();
        names.iter().filter_map(|name| TracedRun::of(name.to_str()?)).collect()
    }

    /// Makes the folder of a run.
    fn make(&self, process: &Process) -> io::Result<PathBuf> {
        PrivateDir::make(&self.folder)?;
        let folder = self.folder.join(process.pane());
        PrivateDir::make(&folder)?;
        Ok(folder)
    }
}

impl Panes {
    /// Has git write traces for a run, unless the user has it write them elsewhere. If that is not possible, commits of
    /// this run have no evidence; that is no reason not to start it.
    pub(crate) async fn trace_git(&self, process: &Process, program: &mut Program) {
        let (users, environment) = (self.git_traces.users.clone(), program.env.clone());
        let now = Instant::now().into_std();
        let asked = tokio::task::spawn_blocking(move || users.has_target(&environment, now)).await;
        if asked.unwrap_or(true) {
            return;
        }
        match self.git_traces.make(process) {
            Ok(folder) => {
                program.env.insert(TARGET_VARIABLE, &folder);
                program.env.insert(OWN_TRACES_VARIABLE, folder);
                if program.env.get(MOST_TRACES_VARIABLE).is_none() {
                    program.env.insert(MOST_TRACES_VARIABLE, MOST_FILES.to_string());
                }
            }
            Err(error) => {
                tracing::warn!(id = %process.id, %error, "cannot find out about commits of a process");
            }
        }
    }

    /// The current run of a process, if it is not over, or something that it started still runs.
    pub fn is_traced_run_alive(&self, traced: &TracedRun) -> bool {
        let is_current =
            |process: &Process| process.runs == traced.run && process.status.is_alive();
        let has_left = || {
            let run = self.run_of(&traced.id).filter(|run| run.number == traced.run);
            run.is_some_and(|run| run.pane.is_some() && !run.watch().borrow().empty)
        };
        self.processes.get(&traced.id).as_ref().is_some_and(is_current) || has_left()
    }
}
