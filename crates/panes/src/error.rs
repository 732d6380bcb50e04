//! Errors of operations on processes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use patterm_keeper::SpawnError;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::env_file::EnvFileError;
use crate::process::ProcessId;

/// An operation on a process failed.
#[derive(Debug, Error)]
pub enum PaneError {
    /// There is no such process.
    #[error("there is no process `{id}`; processes: {known}")]
    NotFound {
        /// The requested id.
        id: String,
        /// A list of the processes, as text.
        known: String,
    },
    /// The operation needs a running process.
    #[error("{id} ({name}) is not running")]
    NotRunning {
        /// Its id.
        id: ProcessId,
        /// Its label.
        name: String,
    },
    /// The operation needs a process that is not running.
    #[error("{0} is already running")]
    AlreadyRunning(ProcessId),
    /// The limit on processes is reached.
    #[error(
        "there are {count} processes, ended ones included, and the limit is {limit}; close {} first",
        count - limit + 1
    )]
    TooMany {
        /// The number of processes.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Its entry does not contain a command.
    #[error("cannot start {0}: its entry has no command")]
    NoRecipe(ProcessId),
    /// The keeper could not start its program.
    #[error("{}", .0.message)]
    Spawn(SpawnError),
    /// Its programs did not end in time.
    #[error("{id} did not end within {patience:?}")]
    NotEnded {
        /// Its id.
        id: ProcessId,
        /// The time they had.
        patience: Duration,
    },
    /// The keeper did not release its pane.
    #[error("{id} was not closed: {source}; close it again")]
    NotClosed {
        /// Its id.
        id: ProcessId,
        /// The cause.
        source: io::Error,
    },
    /// Its init cannot be reached.
    #[error("the init of {id} cannot be reached: {source}")]
    InitGone {
        /// Its id.
        id: ProcessId,
        /// The cause.
        source: rustix::io::Errno,
    },
    /// Its output cannot be stored.
    #[error("cannot store the output of {id} in {}: {source}", folder.display())]
    Log {
        /// Its id.
        id: ProcessId,
        /// The folder for its output.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file with its variables cannot be used.
    #[error(transparent)]
    EnvFile(#[from] EnvFileError),
    /// Its entry could not be written.
    #[error(transparent)]
    State(#[from] StateError),
}
