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
        "`{0}` cannot be started: patterm.toml is not trusted; a person must review it with \
         `patterm trust`"
    )]
    Untrusted(String),
    /// The project file has errors.
    #[error("`{name}` cannot be started: patterm.toml has errors: {}", faults.join("; "))]
    Faulty {
        /// The requested process.
        name: String,
        /// The errors, each with its position.
        faults: Vec<String>,
    },
    /// The project file does not declare it.
    #[error(
        "`preset` is `{name}`, which patterm.toml does not declare; it declares {}",
        known.join(", ")
    )]
    Unknown {
        /// The requested process.
        name: String,
        /// The processes that it declares.
        known: Vec<String>,
    },
    /// The project file declares no processes.
    #[error("`preset` is `{0}`, but patterm.toml declares no processes")]
    NoneDeclared(String),
    /// It is already running.
    #[error("`{name}` is already running as {id}")]
    AlreadyRunning {
        /// Its name in the file.
        name: String,
        /// Its id.
        id: ProcessId,
    },
    /// A dependency will not become ready.
    #[error("`{name}` cannot be started: {why}")]
    Never {
        /// Its name in the file.
        name: String,
        /// The reason.
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
