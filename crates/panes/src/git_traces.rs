//! Folders into which git writes traces of its commands, one for each run: who made a commit is known from the pane that
//! its trace comes from. They are in the state folder, so that a commit that is made while there is no server is found.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use patterm_git::UsersTargets;
use patterm_store::private::PrivateDir;
use patterm_store::state::StateDir;

use crate::process::{Process, ProcessId, RunNumber};

/// The folder of the folders, in the state folder.
const FOLDER: &str = "git";

/// How many runs are looked at: many more than there can be processes.
const MOST_RUNS: usize = 4_096;

/// For how long the answer to "does the user have a target" holds: as long as it takes to start a project.
const ANSWER_HOLDS: Duration = Duration::from_secs(5);

/// The folders of the runs.
#[derive(Debug)]
pub struct GitTraces {
    folder: PathBuf,
    /// Whether users have git write traces elsewhere.
    pub(crate) users: UsersTargets,
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

    /// The folder of a run.
    pub fn of(&self, run: &TracedRun) -> PathBuf {
        self.folder.join(format!("{}.{}", run.id, run.run))
    }

    /// The runs that have a folder.
    pub fn runs(&self) -> Vec<TracedRun> {
        let names = PrivateDir::open(&self.folder).map(|folder| folder.some_names(MOST_RUNS));
        let names = names.ok().and_then(Result::ok).unwrap_or_default();
        names.iter().filter_map(|name| TracedRun::of(name.to_str()?)).collect()
    }

    /// Makes the folder of a run.
    pub(crate) fn make(&self, process: &Process) -> io::Result<PathBuf> {
        PrivateDir::make(&self.folder)?;
        let folder = self.folder.join(process.pane());
        PrivateDir::make(&folder)?;
        Ok(folder)
    }
}
