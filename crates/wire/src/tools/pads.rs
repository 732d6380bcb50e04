//! Tools about scratchpads.

use serde::{Deserialize, Serialize};

use super::tools;
use crate::method::Empty;

tools! {
    /// Lists the scratchpads.
    ListPads = "scratchpad_list": Empty => PadList;
    /// Reads a scratchpad.
    ReadPad = "scratchpad_read": PadRef => PadContent;
    /// Creates or replaces a scratchpad.
    WritePad = "scratchpad_write": WritePadArgs => PadRevision;
    /// Appends to a scratchpad.
    AppendPad = "scratchpad_append": AppendPadArgs => PadRevision;
}

/// The scratchpad that a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PadRef {
    /// Its name.
    pub name: String,
}

/// The scratchpads of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PadList<P = PadInfo> {
    /// The scratchpads, by name.
    pub scratchpads: Vec<P>,
    /// How many there are beyond those.
    #[serde(default)]
    pub more: Option<u64>,
}

/// A scratchpad in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PadInfo {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Its revision.
    #[serde(default)]
    pub revision: String,
    /// When it was changed, in milliseconds since 1970.
    #[serde(default)]
    pub changed_at: u64,
    /// Who changed it.
    #[serde(default)]
    pub changed_by: String,
}

/// A scratchpad.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PadContent {
    /// Its text.
    pub content: String,
    /// Its revision.
    #[serde(default)]
    pub revision: String,
}

/// What to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritePadArgs {
    /// Its name.
    pub name: String,
    /// Its new text.
    pub content: String,
    /// The revision to replace; without it the scratchpad is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<String>,
}

/// What to append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendPadArgs {
    /// Its name.
    pub name: String,
    /// The text.
    pub content: String,
}

/// A scratchpad that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PadRevision {
    /// Its name.
    pub name: String,
    /// Its revision now.
    pub revision: String,
}
