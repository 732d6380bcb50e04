//! Helpers for the tools about scratchpads: names, authors, descriptions and errors.

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ErrorKind, ToolError};
use super::tool::Call;
use crate::caller::Caller;
use patterm_pads::{PadError, PadList, PadName, Pads, Revision};

/// Parses the name of a pad.
pub(super) fn name(given: &str) -> Result<PadName, ToolError> {
    Ok(given.parse::<PadName>().map_err(PadError::from)?)
}

/// Works with the pads once their lock is free, off the thread that serves all connections. The
/// work is finished even if the caller disconnects.
pub(super) async fn with_pads<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&mut Pads) -> Result<T, PadError> + Send + 'static,
) -> Result<T, ToolError> {
    let mut pads = call.host.pads.turn().await;
    Ok(call.blocking(move || work(&mut pads)).await??)
}

/// The caller, as the author of a change.
pub(super) fn author(call: &Call) -> String {
    match &call.caller {
        Caller::Person => "a person".to_owned(),
        Caller::External | Caller::Elsewhere => "external".to_owned(),
        Caller::Token(name) => format!("external ({name})"),
        Caller::Process(id) | Caller::Inside(id) => match call.host.panes.processes.get(id) {
            Some(process) => format!("{id} ({})", process.name),
            None => id.to_string(),
        },
    }
}

/// A pad in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PadSummary {
    /// Its name.
    name: String,
    /// Bytes of its content.
    size: u64,
    /// Its revision; pass it to scratchpad_write as expected_revision.
    revision: String,
    /// When it was changed, in milliseconds since 1970.
    changed_at: u64,
    /// The author: an agent's process id and name, `external`, or `a person's editor` if
    /// the file was changed without these tools.
    changed_by: String,
}

impl PadSummary {
    pub(super) fn all(listed: PadList) -> Vec<Self> {
        listed.pads.into_iter().map(|(name, revision)| Self::of(&name, revision)).collect()
    }

    fn of(name: &PadName, revision: Revision) -> Self {
        let Revision { revision, bytes: size, changed_at, changed_by } = revision;
        Self { name: name.to_string(), size, revision, changed_at, changed_by }
    }
}

/// The answer of tools that change a pad.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Written {
    /// Its name.
    name: String,
    /// Its new revision: the one to expect in your next write.
    revision: String,
    /// Bytes of its content.
    size: u64,
}

impl Written {
    pub(super) fn of(name: &PadName, revision: Revision) -> Self {
        Self { name: name.to_string(), revision: revision.revision, size: revision.bytes }
    }
}

impl From<PadError> for ToolError {
    fn from(error: PadError) -> Self {
        let message = error.to_string();
        let failed = |kind| Self::new(kind, message.clone());
        match error {
            PadError::Name(_) => Self::invalid("name", message),
            PadError::NotFound { .. } => failed(ErrorKind::NotFound),
            PadError::Exists { current, .. } => failed(ErrorKind::Conflict)
                .suggest("scratchpad_write", "with its revision to replace it")
                .suggest("scratchpad_append", "to add to it")
                .with("revision", current.revision)
                .with("changed_by", current.changed_by),
            PadError::Changed { current, .. } | PadError::Kept { current, .. } => {
                failed(ErrorKind::Conflict)
                    .with("revision", current.revision)
                    .with("changed_by", current.changed_by)
            }
            PadError::Gone(_) | PadError::Busy(_) => failed(ErrorKind::Conflict),
            PadError::TooLarge { limit, .. } | PadError::FileTooLarge { limit, .. } => {
                failed(ErrorKind::Limit).with("limit_bytes", limit)
            }
            PadError::Full(limit) => failed(ErrorKind::Limit).with("limit", limit),
            PadError::NoFile(_) | PadError::NoText { .. } | PadError::Io { .. } => {
                failed(ErrorKind::Unavailable)
            }
            PadError::State(error) => error.into(),
        }
    }
}
