//! Why a text is not taken.

use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;
use thiserror::Error;

use super::long_texts::TEXT_BYTES;

/// Why a text could not be queued.
#[derive(Debug, Error)]
pub enum DeliveryError {
    /// Too many wait already.
    #[error("{waiting} texts wait for {to} already; it must take some first")]
    Full {
        /// How many wait.
        waiting: usize,
        /// Whom they are for.
        to: ProcessId,
    },
    /// It could not be written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Why a text cannot be given to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TextError {
    /// It is too long.
    #[error("has {0} bytes, and at most {TEXT_BYTES} are taken; put it into a file and name that")]
    TooLong(usize),
    /// It has no words.
    #[error("says nothing")]
    Empty,
}
