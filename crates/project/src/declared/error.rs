//! Why a declared process is not started.

use patterm_panes::PaneError;
use patterm_panes::process::ProcessId;
use patterm_store::state::StateError;
use thiserror::Error;

/// Why a declared process is not started.
#[derive(Debug, Error)]
pub enum DeclaredError {
    /// The project file is not trusted.
    #[error(
        "`{0}` cannot be started: patterm.toml is not trusted; a person looks at it with `patterm \
         trust`"
    )]
    Untrusted(String),
    /// The project file has mistakes.
    #[error("`{name}` cannot be started: patterm.toml has mistakes: {}", faults.join("; "))]
    Faulty {
        /// The process that was asked for.
        name: String,
        /// Each with its place.
        faults: Vec<String>,
    },
    /// The project file declares others.
    #[error(
        "`preset` names `{name}`, which patterm.toml does not declare; it declares {}",
        known.join(", ")
    )]
    Unknown {
        /// The process that was asked for.
        name: String,
        /// Those that it declares.
        known: Vec<String>,
    },
    /// The project file declares no processes.
    #[error("`preset` names `{0}`, and patterm.toml declares no processes")]
    NoneDeclared(String),
    /// It runs.
    #[error("`{name}` runs already, as {id}")]
    AlreadyRunning {
        /// Its name in the file.
        name: String,
        /// Its id.
        id: ProcessId,
    },
    /// What it needs will not be ready.
    #[error("`{name}` cannot be started: {why}")]
    Never {
        /// Its name in the file.
        name: String,
        /// Why.
        why: String,
    },
    /// Its program could not be started.
    #[error(transparent)]
    Pane(#[from] PaneError),
}

impl From<StateError> for DeclaredError {
    fn from(error: StateError) -> Self {
        Self::Pane(error.into())
    }
}
