//! Tools that read, search and wait for output.

use serde::{Deserialize, Serialize};

use super::tools;
use crate::base64;

tools! {
    /// Reads the screen of a process.
    GetScreen = "get_process_output": ScreenArgs => ScreenOutput;
    /// Reads the text that a process printed.
    GetText = "get_process_output": TextArgs => OutputPart;
    /// Reads the bytes that a process printed.
    GetRawOutput = "get_process_raw_output": RawOutputArgs => OutputPart;
    /// Searches what a process printed.
    SearchOutput = "search_output": SearchArgs => SearchResult;
    /// Waits for a line that matches.
    WaitForPattern = "wait_for_pattern": PatternArgs => PatternResult;
    /// Waits until a process prints something.
    WaitForOutput = "wait_for_output": WaitArgs => WaitResult;
}

/// Which screen to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenArgs {
    /// The process's id.
    pub process_id: String,
    /// When; now by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<ScreenMoment>,
}

/// A moment of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ScreenMoment {
    /// The output before this offset was on it.
    Offset(u64),
    /// A time, as [`crate::events::format_time`] writes it.
    Time(String),
}

/// The screen of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenOutput {
    /// Its rows, without blank ones at the end.
    #[serde(default)]
    pub rows: Vec<String>,
}

/// Which text to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextArgs {
    /// The process's id.
    pub process_id: String,
    /// What to read.
    pub mode: TextMode,
    /// The offset to start at; by default where the current run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_offset: Option<u64>,
    /// How much to read.
    pub max_bytes: u64,
}

/// The mode in which `get_process_output` returns an [`OutputPart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextMode {
    /// Text since an offset.
    Stream,
}

/// Which bytes to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawOutputArgs {
    /// The process's id.
    pub process_id: String,
    /// The offset to start at; by default where the current run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_offset: Option<u64>,
    /// How much to read.
    pub max_bytes: u64,
}

/// A part of what a process printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPart {
    /// The part, if it is text.
    #[serde(default)]
    pub text: Option<String>,
    /// The part, if it is not.
    #[serde(default)]
    pub base64: Option<String>,
    /// Where it begins.
    pub offset: u64,
    /// Where the next part begins.
    pub next_offset: u64,
    /// How many bytes before it are lost.
    #[serde(default)]
    pub dropped: Option<u64>,
}

impl OutputPart {
    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match (self.text, self.base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(encoded)) => base64::decode(&encoded),
            (None, None) => Vec::new(),
        }
    }
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchArgs {
    /// The process's id.
    pub process_id: String,
    /// A regular expression.
    pub pattern: String,
    /// How many matches to return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Lines that match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The lines.
    pub matches: Vec<MatchingLine>,
}

/// A line that matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchingLine {
    /// Its number, from 1.
    pub line: u64,
    /// The line.
    pub text: String,
}

/// What line to wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatternArgs {
    /// The process's id.
    pub process_id: String,
    /// A regular expression.
    pub pattern: String,
    /// How long to wait.
    pub timeout_seconds: f64,
    /// Where to look for a line that is already there.
    pub scope: PatternScope,
}

/// Where `wait_for_pattern` looks for a line that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatternScope {
    /// On the screen and in what scrolled off it.
    Scrollback,
}

/// How a wait for a line ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternResult {
    /// Whether a line matched.
    pub matched: bool,
    /// The line.
    #[serde(default)]
    pub line: Option<String>,
    /// The process ended first.
    pub exited: bool,
}

/// Which output to wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitArgs {
    /// The process's id.
    pub process_id: String,
    /// Output after this offset.
    pub since_offset: u64,
    /// How long to wait.
    pub timeout_seconds: f64,
}

/// How a wait for output ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitResult {
    /// The end of the output now.
    pub next_offset: u64,
}
