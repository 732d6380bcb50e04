//! The output of several processes as lines with their times, merged into one stream. Such a connection is used for
//! nothing else. A client whose server died continues where it was: each line says where the next one begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// The version of these values, which a client sends with its request.
pub const VERSION: u32 = 1;

/// Turns a connection into one that sends the lines of processes.
#[derive(Debug)]
pub enum ReadLogs {}

impl Method for ReadLogs {
    const NAME: &'static str = "patterm/logs";
    type Params = LogsRequest;
    type Result = LogsBegun;
}

/// Which lines to send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsRequest {
    /// [`VERSION`].
    pub version: u32,
    /// The ids of the processes; all if there are none.
    #[serde(default)]
    pub processes: Vec<String>,
    /// Only the last lines of each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u64>,
    /// Only lines since this time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Send new lines as well: of new processes too, if all are wanted; otherwise until the processes have ended.
    #[serde(default)]
    pub follow: bool,
    /// The offset at which to continue, by process: `tail` and `since_ms` do not apply to these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub continue_at: BTreeMap<String, u64>,
}

/// The answer; [`LogLines`] follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsBegun {
    /// [`VERSION`].
    pub version: u32,
}

/// The notification with [`LogLines`].
pub const LINES: &str = "patterm/log-lines";

/// Some lines, in the order of their times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLines {
    /// The lines.
    pub lines: Vec<LogLine>,
    /// The lines so far are all that there were when this was sent; what follows is new. With it comes the offset of
    /// the next line, by process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<BTreeMap<String, u64>>,
    /// There will be no more.
    #[serde(default)]
    pub done: bool,
}

/// A line that a process printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The process's id.
    pub process_id: String,
    /// Its name.
    pub name: String,
    /// When its end was printed, in milliseconds since 1970; unknown for output of patterm 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Its text, without escape sequences.
    pub text: String,
    /// The offset of the next line in the output of the process. A line that cursor movements divide
    /// comes as several with the same offset, which are never sent apart.
    pub next_offset: u64,
    /// Bytes that are lost before this line.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
