//! Why something could not be done with a timer.

use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::limits::{OF_ONE_OWNER, OF_THE_PROJECT};
use crate::record::TimerId;

/// Why something could not be done with a timer.
#[derive(Debug, Error)]
pub enum TimerError {
    /// The project has too many.
    #[error("the project has {OF_THE_PROJECT} timers; cancel some first")]
    ProjectFull,
    /// Their owner has too many.
    #[error("{0} has {OF_ONE_OWNER} timers; cancel some first")]
    OwnerFull(ProcessId),
    /// Their texts are too long together.
    #[error(
        "the bodies of all timers take up to 4 MiB together; put this one into a file and name that \
         in the body"
    )]
    BodiesFull,
    /// It fired.
    #[error("timer {0} has fired already")]
    Fired(TimerId),
    /// It was cancelled.
    #[error("timer {0} was cancelled")]
    Cancelled(TimerId),
    /// Its owner was closed.
    #[error("timer {0} went when its owner was closed")]
    OwnerClosed(TimerId),
    /// It is over, too long ago to know how.
    #[error("timer {0} is over: it fired or was cancelled")]
    Over(TimerId),
    /// There never was one of this id.
    #[error("there is no timer `{0}`")]
    Unknown(TimerId),
    /// The timers could not be written.
    #[error(transparent)]
    State(#[from] StateError),
}

impl TimerError {
    /// Whether there may be no more timers.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::ProjectFull | Self::OwnerFull(_) | Self::BodiesFull)
    }
}
