//! Why something could not be done with an agent.

use patterm_panes::PaneError;
use patterm_store::state::StateError;
use thiserror::Error;

use crate::delivery::DeliveryError;
use crate::presets::LaunchError;

/// Why something could not be done with an agent.
#[derive(Debug, Error)]
pub enum AgentError {
    /// There is no such preset.
    #[error(
        "`agent` names no preset: `{name}`; there are {}{}",
        known.join(", "),
        fault.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default()
    )]
    UnknownPreset {
        /// The preset that was asked for.
        name: String,
        /// Those there are.
        known: Vec<String>,
        /// What is wrong with the settings as a whole.
        fault: Option<String>,
    },
    /// The preset has mistakes.
    #[error("the preset {name} is wrong: {why}")]
    BadPreset {
        /// Its name.
        name: String,
        /// The mistakes.
        why: String,
    },
    /// Its CLI is not there.
    #[error("{title} cannot be started: {why}")]
    NoProgram {
        /// The CLI.
        title: String,
        /// Why.
        why: String,
    },
    /// Its CLI cannot go on with a conversation.
    #[error("the preset {0} does not say how a conversation is taken up again")]
    NotResumable(String),
    /// Its preset does not say how it is started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// No more agents may run.
    #[error("{0} agents run already; close one first")]
    TooMany(usize),
    /// The caller may start none.
    #[error(
        "you stand {0} agents below the top, and none may stand deeper; do it yourself, or ask the \
         agent above you"
    )]
    TooDeep(usize),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
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
