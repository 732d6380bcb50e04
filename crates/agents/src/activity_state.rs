//! The activity of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActivityState {
    /// It is busy.
    Working,
    /// It is waiting for its next task.
    Idle,
    /// It is waiting for a person: a permission or a login.
    Blocked,
    /// It has reached a usage or rate limit and does nothing until the limit ends.
    Limited,
    /// There is no evidence. Never treated as idle.
    Unknown,
}

/// A state with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Activity {
    /// `working`, `idle`, `blocked`, `limited` or `unknown`.
    pub state: ActivityState,
    /// The rule that applied, and the line or title that it matched.
    pub reason: String,
    /// What a person is asked: the question of the dialog, and its options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// The same in parts, for a person to choose an option.
    #[serde(skip)]
    pub dialog: Option<Dialog>,
    /// When the limit ends, in the CLI's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<String>,
}

impl Activity {
    /// A state that has no known end.
    pub fn new(state: ActivityState, reason: impl Into<String>) -> Self {
        Self { state, reason: reason.into(), asks: None, dialog: None, limited_until: None }
    }

    /// Why a person is needed, in words for people.
    pub fn for_people(&self) -> &str {
        self.asks.as_deref().unwrap_or(&self.reason)
    }

    /// A limit, with its end if that is known.
    pub fn limited(reason: impl Into<String>, until: Option<String>) -> Self {
        Self { limited_until: until, ..Self::new(ActivityState::Limited, reason) }
    }
}

/// The keys that choose an option of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWay {
    /// Its number.
    Number,
    /// Up or down until the cursor is on it, then Enter.
    UpDown,
    /// Left or right until it is highlighted, then Enter; for options that share one row.
    LeftRight,
    /// The option itself, if it is one character.
    Label,
    /// Not a way by itself: Enter follows the number or the label, for a CLI that reads a line. The label may be
    /// longer then.
    Enter,
}

/// A dialog on an agent's screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Distinguishes it from every other dialog: from one with other text, and from an earlier one with the same text.
    pub version: String,
    /// What it asks.
    pub question: String,
    /// What it offers, with their numbers if it shows them.
    pub options: Vec<String>,
    /// How to choose each of them, if the preset says so.
    pub(crate) ways: Vec<Option<AnswerWay>>,
    /// The option with the cursor.
    pub(crate) cursor: Option<usize>,
    /// The rule of the preset that found it.
    pub(crate) rule: String,
}

impl Dialog {
    /// Whether patterm knows how to choose an option.
    pub fn can_answer(&self, option: usize) -> bool {
        self.ways.get(option).is_some_and(Option::is_some)
    }
}

/// The current activity of a process, as its followers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityStatus {
    /// The newest activity.
    pub activity: Activity,
    /// It has been idle long enough for others to be notified.
    pub settled: bool,
    /// How often it has settled, so that a follower that wakes up too late for a short rest still
    /// notices it.
    pub rests: u64,
}

impl Default for ActivityStatus {
    fn default() -> Self {
        let activity = Activity::new(ActivityState::Unknown, "it has not been observed yet");
        Self { activity, settled: false, rests: 0 }
    }
}
