//! How events are asked for.

use serde::{Deserialize, Serialize};

use super::{EventRecord, Fact};
use crate::method::{Empty, Method};

/// Which events to return.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventQuery {
    /// The number of the first event; without it, the newest events are returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Only these types: `agent.blocked`, or `agent.*` for all types about agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Only events about this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// How many to return at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl EventQuery {
    /// Whether it asks for this event.
    #[must_use]
    pub fn matches(&self, kind: &str, process_id: Option<&str>) -> bool {
        let is_type = self.types.is_empty() || self.types.iter().any(|t| matches_type(t, kind));
        is_type && self.process_id.as_deref().is_none_or(|wanted| process_id == Some(wanted))
    }
}

/// Whether a type is the wanted one, or begins as `wanted` does before its `.*`.
#[must_use]
pub fn matches_type(wanted: &str, kind: &str) -> bool {
    match wanted.strip_suffix(".*") {
        Some(group) => kind.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')),
        None => wanted == kind,
    }
}

/// Checks that there are events of a type such as `agent.blocked`, or of a group such as `agent.*`; the error names the
/// types.
pub fn check_type(wanted: &str) -> Result<(), String> {
    if Fact::TYPES.iter().any(|kind| matches_type(wanted, kind)) {
        return Ok(());
    }
    let known = Fact::TYPES.join(", ");
    Err(format!(
        "is not a type of events; the types are {known}, and NAME.* for all that begin with NAME"
    ))
}

/// Events in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPage<E = EventRecord> {
    /// The events.
    pub events: Vec<E>,
    /// Where to continue: the `since` of the next call.
    pub next: u64,
    /// How many events between `since` and `next` are no longer stored.
    #[serde(default)]
    pub dropped: u64,
}

/// Returns events as the log stores them, so that their hashes can be checked.
#[derive(Debug)]
pub enum ExportEvents {}

impl Method for ExportEvents {
    const NAME: &'static str = "patterm/export-events";
    type Params = EventQuery;
    type Result = EventLines;
}

/// Stored events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLines {
    /// The JSON text of each event.
    pub lines: Vec<String>,
    /// Where to continue.
    pub next: u64,
    /// Whether there are more now.
    pub more: bool,
}

/// Checks the log of events.
#[derive(Debug)]
pub enum VerifyEvents {}

impl Method for VerifyEvents {
    const NAME: &'static str = "patterm/verify-events";
    type Params = Empty;
    type Result = LogVerdict;
}

/// What a check of the log found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogVerdict {
    /// How many events are stored.
    pub events: u64,
    /// The number of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The number of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// How many were dropped because the log has a limited size.
    pub dropped: u64,
    /// How many were lost when the machine stopped, and are recorded as lost.
    #[serde(default)]
    pub lost: u64,
    /// How many are damaged or missing for no recorded reason, as far as that can be counted.
    #[serde(default)]
    pub missing: u64,
    /// The first place where the log is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_break: Option<LogBreak>,
}

/// Where a log is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogBreak {
    /// The number of the first event that is damaged or missing.
    pub seq: u64,
    /// What is wrong.
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_types_groups_and_a_process() {
        let query = |types: &[&str], process: Option<&str>| EventQuery {
            types: types.iter().map(ToString::to_string).collect(),
            process_id: process.map(str::to_owned),
            ..EventQuery::default()
        };
        assert!(query(&[], None).matches("agent.idle", None));
        assert!(query(&["pad.written", "agent.*"], None).matches("agent.idle", Some("p1")));
        assert!(!query(&["agent.*"], None).matches("agents.idle", None));
        assert!(!query(&["agent"], None).matches("agent.idle", None));
        assert!(query(&[], Some("p1")).matches("agent.idle", Some("p1")));
        assert!(!query(&[], Some("p1")).matches("agent.idle", None));
    }
}
