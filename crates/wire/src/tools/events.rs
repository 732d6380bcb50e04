//! Tools about events.

use serde::{Deserialize, Serialize};

use super::tools;
use crate::events::{EventPage, EventQuery, EventRecord};

tools! {
    /// Reads events.
    GetEvents = "get_events": EventQuery => EventPage;
    /// Waits for events.
    WaitForEvent = "wait_for_event": WaitForEventArgs => NextEvents;
}

/// What to wait for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitForEventArgs {
    /// The types; all if empty.
    pub types: Vec<String>,
    /// Only events about this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// The number of the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// How long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
}

/// The events that came.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NextEvents<E = EventRecord> {
    /// The events; none if the time passed.
    pub events: Vec<E>,
    /// Where to continue.
    pub next: u64,
    /// How many in between are not stored any more.
    #[serde(default)]
    pub dropped: u64,
}
