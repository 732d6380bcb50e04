//! How a digest is asked for, and how a viewer says what it has shown.

use serde::{Deserialize, Serialize};

use super::Digest;
use crate::method::{Empty, Method};

/// Builds a digest. It changes nothing.
#[derive(Debug)]
pub enum ReadDigest {}

impl Method for ReadDigest {
    const NAME: &'static str = "patterm/digest";
    type Params = DigestRequest;
    type Result = Digest;
}

/// Where a digest begins: at `since`, else at `since_ms`, else where the viewer last looked, else with the first event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestRequest {
    /// The number of its first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// A time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Who looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewer: Option<Viewer>,
}

/// Where a person looks. Each has a place in the log up to which it has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Viewer {
    /// The TUI.
    Tui,
    /// `patterm digest`.
    Cli,
}

/// A person has seen what happened so far.
#[derive(Debug)]
pub enum NoteLooked {}

impl Method for NoteLooked {
    const NAME: &'static str = "patterm/looked";
    const PERSON_ONLY: Option<&'static str> = Some("decide what a person has seen");
    type Params = LookedRequest;
    type Result = Empty;
}

/// Who has seen how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedRequest {
    /// Who looked.
    pub viewer: Viewer,
    /// The digest that was shown ends before this event, at this time; without one, everything until now was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<(u64, String)>,
}
