//! What all processes use at the moment, for a dashboard that asks about once a second while it is open.

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// Measures all processes.
#[derive(Debug)]
pub enum Usage {}

impl Method for Usage {
    const NAME: &'static str = "patterm/usage";
    type Params = UsageRequest;
    type Result = UsageResult;
}

/// What to measure besides CPU time and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRequest {
    /// The ports that the processes listen on, which takes longer to find out.
    #[serde(default)]
    pub ports: bool,
}

/// The processes at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageResult {
    /// When they were measured, in milliseconds of a clock that only moves forward.
    pub at_ms: u64,
    /// The processes, oldest first.
    pub processes: Vec<ProcessUsage>,
}

/// What one process and its descendants use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// The id of the process.
    pub id: String,
    /// CPU time that they have used, in milliseconds; `None` if it is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Bytes of memory that they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// When it was last started, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// When it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// The health of a declared process that is running, in a word or two: `healthy` or `unhealthy` if it is checked,
    /// otherwise `ready` or `not ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// The ports that they listen on; `None` if they were not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// The last line on its screen that is not empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_line: String,
}
