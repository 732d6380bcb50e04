//! Converts the errors of the other subsystems into those of tools: adds the kind and, where the subsystem
//! does not know about tools, a tool that helps.

use patterm_agents::AgentError;
use patterm_agents::delivery::{DeliveryError, TextError, check_text, long_texts::TEXT_BYTES};
use patterm_keeper::SpawnFault;
use patterm_panes::PaneError;
use patterm_project::declared::DeclaredError;
use patterm_store::state::StateError;
use patterm_timers::TimerError;

use super::error::{ErrorKind, ToolError};
use crate::lifecycle::LifecycleError;

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        // The disk is full or not writable: tell the caller, who may be able to change that.
        let kind = match error {
            StateError::Io { .. } | StateError::Full { .. } | StateError::NotOurs { .. } => {
                ErrorKind::Unavailable
            }
            StateError::NoPlace | StateError::Newer { .. } => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<PaneError> for ToolError {
    fn from(error: PaneError) -> Self {
        let message = error.to_string();
        match error {
            PaneError::NotFound { .. } => Self::new(ErrorKind::NotFound, message),
            PaneError::NotRunning { .. } => {
                Self::new(ErrorKind::NotRunning, message).suggest("start_process", "to start it")
            }
            PaneError::AlreadyRunning(_) => {
                let error = Self::new(ErrorKind::AlreadyRunning, message);
                error.suggest("restart_process", "to end it and start it again")
            }
            PaneError::TooMany { .. } => Self::new(ErrorKind::Limit, message),
            PaneError::Spawn(error) => {
                let kind = match error.fault {
                    SpawnFault::Request => ErrorKind::InvalidArgument,
                    SpawnFault::Exhausted => ErrorKind::Limit,
                    SpawnFault::System => ErrorKind::Unavailable,
                };
                Self::new(kind, message)
            }
            PaneError::NotEnded { .. } => Self::new(ErrorKind::Timeout, message),
            PaneError::NoRecipe(_)
            | PaneError::NotClosed { .. }
            | PaneError::InitGone { .. }
            | PaneError::Log { .. } => Self::new(ErrorKind::Unavailable, message),
            PaneError::EnvFile(_) => Self::new(ErrorKind::Unavailable, message),
            PaneError::State(error) => error.into(),
        }
    }
}

impl From<AgentError> for ToolError {
    fn from(error: AgentError) -> Self {
        let message = error.to_string();
        match error {
            AgentError::UnknownPreset { .. } => {
                Self::new(ErrorKind::InvalidArgument, message).with("field", "agent")
            }
            AgentError::NotResumable(_) => {
                let error = Self::new(ErrorKind::Unavailable, message);
                error.suggest("restart_process", "to start it with a new conversation")
            }
            AgentError::BadPreset { .. } | AgentError::NoProgram { .. } | AgentError::Launch(_) => {
                Self::new(ErrorKind::Unavailable, message)
            }
            AgentError::TooMany(_) | AgentError::TooDeep(_) => Self::new(ErrorKind::Limit, message),
            AgentError::NoRandom(_) => Self::new(ErrorKind::Internal, message),
            AgentError::Delivery(error) => error.into(),
            AgentError::Pane(error) => error.into(),
        }
    }
}

impl From<DeliveryError> for ToolError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Full { .. } => Self::new(ErrorKind::Limit, error.to_string()),
            DeliveryError::State(error) => error.into(),
        }
    }
}

impl From<DeclaredError> for ToolError {
    fn from(error: DeclaredError) -> Self {
        let message = error.to_string();
        match error {
            DeclaredError::Untrusted(_)
            | DeclaredError::Faulty { .. }
            | DeclaredError::Never { .. } => Self::new(ErrorKind::Unavailable, message),
            DeclaredError::Unknown { .. } | DeclaredError::NoneDeclared(_) => {
                Self::new(ErrorKind::InvalidArgument, message).with("field", "preset")
            }
            DeclaredError::AlreadyRunning { id, .. } => {
                let error = Self::new(ErrorKind::AlreadyRunning, message);
                error.with("process_id", id.as_str()).suggest("restart_process", "to restart it")
            }
            DeclaredError::Pane(error) => error.into(),
        }
    }
}

impl From<TimerError> for ToolError {
    fn from(error: TimerError) -> Self {
        let message = error.to_string();
        match error {
            TimerError::State(error) => error.into(),
            TimerError::Unknown(_) => {
                Self::new(ErrorKind::NotFound, message).suggest("timer_list", "to list the timers")
            }
            error if error.is_limit() => Self::new(ErrorKind::Limit, message),
            _ => Self::new(ErrorKind::NotFound, message),
        }
    }
}

impl From<LifecycleError> for ToolError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Pane(error) => error.into(),
            LifecycleError::Agent(error) => error.into(),
            LifecycleError::Declared(error) => error.into(),
        }
    }
}

/// Checks a text argument that is to be typed into a process.
pub(super) fn text_argument(field: &str, text: &str) -> Result<String, ToolError> {
    check_text(text).map_err(|error| match error {
        TextError::Empty => ToolError::invalid(field, error),
        TextError::TooLong(_) => {
            let message = format!("`{field}` {error}");
            ToolError::new(ErrorKind::Limit, message).with("limit_bytes", TEXT_BYTES)
        }
    })
}
