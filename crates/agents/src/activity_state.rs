//! What can be said of a process's activity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a process does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActivityState {
    /// It does.
    Working,
    /// It waits for its next task.
    Idle,
    /// It waits for a person: a permission, a login.
    Blocked,
    /// Its usage is used up, or its rate is limited: it does nothing until that ends.
    Limited,
    /// Nothing tells. Never taken for idle.
    Unknown,
}

/// A state, and why that is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Activity {
    /// `working`, `idle`, `blocked`, `limited` or `unknown`.
    pub state: ActivityState,
    /// The rule, and the line or title it was concluded from.
    pub reason: String,
    /// When the limit ends, as its CLI says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<String>,
}

impl Activity {
    /// A state without an end that is known.
    pub fn new(state: ActivityState, reason: impl Into<String>) -> Self {
        Self { state, reason: reason.into(), limited_until: None }
    }

    /// A limit that ends then, where that is known.
    pub fn limited(reason: impl Into<String>, until: Option<String>) -> Self {
        Self { limited_until: until, ..Self::new(ActivityState::Limited, reason) }
    }
}

/// What stands of a process's activity at a moment, for whoever follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityStatus {
    /// The newest activity.
    pub activity: Activity,
    /// It is idle, and has been long enough to be told to others.
    pub settled: bool,
    /// How often it came to that: whoever looks too late for a short rest still sees it here.
    pub rests: u64,
}

impl Default for ActivityStatus {
    fn default() -> Self {
        let activity = Activity::new(ActivityState::Unknown, "nothing was seen of it yet");
        Self { activity, settled: false, rests: 0 }
    }
}
