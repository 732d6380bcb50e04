//! Why the log of events cannot be used.

use std::io;
use std::path::PathBuf;

use patterm_store::state::StateError;
use thiserror::Error;

/// Why events cannot be stored or read.
#[derive(Debug, Error)]
pub enum EventError {
    /// The log's folder or its checkpoint cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of the log cannot be read.
    #[error("cannot read the events in {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk has no room, and as many events as fit into memory wait for it.
    #[error(
        "an event was not stored: {waiting} events already wait until {folder} can be written ({source}); free some space"
    )]
    NotStored {
        /// The log's folder.
        folder: PathBuf,
        /// How many events wait.
        waiting: usize,
        /// Why it cannot be written.
        source: io::Error,
    },
    /// The thread that syncs the log could not be started.
    #[error("cannot start the thread that syncs events: {0}")]
    Thread(io::Error),
}
