//! Errors of operations on timers.

use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::limits::{OF_ONE_OWNER, OF_THE_PROJECT};
use crate::record::TimerId;

/// Why an operation on a timer failed.
#[derive(Debug, Error)]
pub enum TimerError {
    /// The project has too many timers.
    #[error("the project has {OF_THE_PROJECT} timers, which is the limit; cancel some first")]
    ProjectFull,
    /// The owner has too many timers.
    #[error("{0} has {OF_ONE_OWNER} timers, which is the limit; cancel some first")]
    OwnerFull(ProcessId),
    /// The bodies of all timers are too long.
    #[error(
        "the bodies of all timers may have up to 4 MiB together; put this text into a file, and name \
         the file in the body"
    )]
    BodiesFull,
    /// It fired.
    #[error("timer {0} has already fired")]
    Fired(TimerId),
    /// It was cancelled.
    #[error("timer {0} was cancelled")]
    Cancelled(TimerId),
    /// Its owner was closed.
    #[error("timer {0} ended when its owner was closed")]
    OwnerClosed(TimerId),
    /// It ended too long ago to know how.
    #[error("timer {0} has ended: it fired or was cancelled")]
    Over(TimerId),
    /// No timer ever had this id.
    #[error("there is no timer `{0}`")]
    Unknown(TimerId),
    /// The timers could not be saved.
    #[error(transparent)]
    State(#[from] StateError),
}

impl TimerError {
    /// Whether a limit was reached.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::ProjectFull | Self::OwnerFull(_) | Self::BodiesFull)
    }
}
