//! Why something could not be done with a process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use patterm_keeper::SpawnError;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::process::ProcessId;

/// Why something could not be done with a process.
#[derive(Debug, Error)]
pub enum PaneError {
    /// There is no such process.
    #[error("there is no process `{id}`; processes: {known}")]
    NotFound {
        /// The id that was asked for.
        id: String,
        /// The processes there are, in words.
        known: String,
    },
    /// It needs a process that runs.
    #[error("{id} ({name}) is not running")]
    NotRunning {
        /// Its id.
        id: ProcessId,
        /// Its label.
        name: String,
    },
    /// The process is not running.
    #[error("{0} runs")]
    AlreadyRunning(ProcessId),
    /// There may be no more processes.
    #[error(
        "there are {count} processes, ended ones included, and the limit is {limit}; close {} first",
        count - limit + 1
    )]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Its entry does not say how it is started.
    #[error("nobody knows how to start {0}")]
    NoRecipe(ProcessId),
    /// The keeper could not start its program.
    #[error("{}", .0.message)]
    Spawn(SpawnError),
    /// Its programs did not end in time.
    #[error("{id} could not be ended within {patience:?}")]
    NotEnded {
        /// Its id.
        id: ProcessId,
        /// How long they had.
        patience: Duration,
    },
    /// The keeper did not let go of its pane.
    #[error("{id} was not closed: {source}; close it again then")]
    NotClosed {
        /// Its id.
        id: ProcessId,
        /// Why.
        source: io::Error,
    },
    /// Its init cannot be reached.
    #[error("what watches over {id} is gone: {source}")]
    InitGone {
        /// Its id.
        id: ProcessId,
        /// Why.
        source: rustix::io::Errno,
    },
    /// Its output cannot be kept.
    #[error("cannot keep the output of {id} in {}: {source}", folder.display())]
    Log {
        /// Its id.
        id: ProcessId,
        /// Where its output would be.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its entry could not be written.
    #[error(transparent)]
    State(#[from] StateError),
}
