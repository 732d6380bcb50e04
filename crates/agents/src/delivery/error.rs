//! Why a text is rejected.

use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;
use thiserror::Error;

use super::long_texts::TEXT_BYTES;

/// Why a text could not be queued.
#[derive(Debug, Error)]
pub enum DeliveryError {
    /// Too many texts are waiting.
    #[error(
        "{waiting} texts, the maximum, are already waiting for {to}; try again when some have been delivered"
    )]
    Full {
        /// How many are waiting.
        waiting: usize,
        /// The process they are for.
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
    #[error(
        "has {0} bytes, and the limit is {TEXT_BYTES}; put it into a file and send the file's name"
    )]
    TooLong(usize),
    /// It is empty.
    #[error("is empty")]
    Empty,
}
