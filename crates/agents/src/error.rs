//! Errors of operations on agents.

use patterm_panes::PaneError;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::delivery::DeliveryError;
use crate::presets::LaunchError;

/// Why an operation on an agent failed.
#[derive(Debug, Error)]
pub enum AgentError {
    /// There is no such preset.
    #[error(
        "`agent` is `{name}`, which is not a preset; the presets are {}{}",
        known.join(", "),
        fault.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default()
    )]
    UnknownPreset {
        /// The requested preset.
        name: String,
        /// The presets that exist.
        known: Vec<String>,
        /// What is wrong with the settings file as a whole.
        fault: Option<String>,
    },
    /// The preset is invalid.
    #[error("the preset {name} is invalid: {why}")]
    BadPreset {
        /// The preset's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Its CLI was not found.
    #[error("{title} cannot be started: {why}")]
    NoProgram {
        /// The CLI.
        title: String,
        /// Why.
        why: String,
    },
    /// Its CLI cannot resume a conversation.
    #[error("the preset {0} has no `resume` section, so a conversation cannot be resumed")]
    NotResumable(String),
    /// Its preset cannot be turned into a command line.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The limit of running agents is reached.
    #[error("{0} agents are already running, which is the limit; close one first")]
    TooMany(usize),
    /// The caller is too deep in the tree to start an agent.
    #[error(
        "agents may be nested at most {0} deep, and you are at that depth; do it yourself, or ask \
         the agent above you"
    )]
    TooDeep(usize),
    /// The system's random number generator failed.
    #[error("cannot get random numbers from the system: {0}")]
    NoRandom(getrandom::Error),
    /// Its first prompt could not be queued.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// Its program could not be started.
    #[error(transparent)]
    Pane(#[from] PaneError),
}

impl From<StateError> for AgentError {
    fn from(error: StateError) -> Self {
        Self::Pane(error.into())
    }
}
