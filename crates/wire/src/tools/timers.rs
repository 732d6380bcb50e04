//! The tool that lists timers.

use serde::{Deserialize, Serialize};

use super::tools;
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

/// What a timer waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A time.
    #[default]
    Delay,
    /// One of several processes to become idle.
    IdleAny,
    /// All of several processes to become idle.
    IdleAll,
    /// A process to end.
    Exit,
}
