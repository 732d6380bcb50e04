//! The tool that lists timers.

use serde::{Deserialize, Serialize};

use super::tools;
use crate::follow::TimerKind;
use crate::method::Empty;

tools! {
    /// Lists the timers.
    ListTimers = "timer_list": Empty => TimerList;
}

/// The timers of the project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerList<T = TimerSummary> {
    /// The timers, oldest first.
    pub timers: Vec<T>,
}

/// A timer in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerSummary {
    /// Its id.
    pub timer_id: String,
    /// What it waits for.
    pub kind: TimerKind,
    /// `pending` or `paused`.
    pub status: String,
    /// The process that gets its text.
    pub owner_process_id: String,
    /// Its label.
    #[serde(default)]
    pub label: Option<String>,
    /// Seconds until it fires.
    #[serde(default)]
    pub remaining_seconds: Option<f64>,
    /// The processes it watches.
    #[serde(default)]
    pub watched: Vec<String>,
    /// The beginning of its text.
    #[serde(default)]
    pub excerpt: Option<String>,
}
