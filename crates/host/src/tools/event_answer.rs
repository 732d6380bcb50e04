//! What the tools about events return.

use patterm_wire::events::{EventPage, EventQuery, EventRecord, check_type};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::{ErrorKind, ToolError};
use super::process::find;
use super::tool::Call;

/// The longest part of an unknown type that an error repeats.
const TYPE_CHARS: usize = 40;

/// An event.
#[derive(Serialize, JsonSchema)]
pub(super) struct EventAnswer {
    /// Its number; the order of events.
    seq: u64,
    /// When.
    time: String,
    /// For example `agent.blocked`.
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
    /// Who caused it.
    actor: Value,
    /// Offset in the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    data: Map<String, Value>,
    /// Recorded by the next server, after a crash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    recovered: bool,
}

impl From<EventRecord> for EventAnswer {
    fn from(event: EventRecord) -> Self {
        let EventRecord {
            seq,
            time,
            kind,
            process_id,
            run,
            actor,
            offset,
            data,
            recovered,
            prev: _,
        } = event;
        let actor = serde_json::to_value(actor).unwrap_or_default();
        Self { seq, time, kind, process_id, run, actor, offset, data, recovered }
    }
}

/// Refuses types that no event can have: nothing would ever match them.
pub(super) fn check_types(types: &[String]) -> Result<(), ToolError> {
    let unknown = types.iter().find_map(|kind| Some((kind, check_type(kind).err()?)));
    unknown.map_or(Ok(()), |(kind, why)| {
        let kind: String = kind.chars().take(TYPE_CHARS).collect();
        Err(ToolError::invalid("types", format_args!("contains {kind:?}, which {why}")))
    })
}

/// Reads a page of events.
pub(super) async fn read(call: &Call, query: EventQuery) -> Result<EventPage, ToolError> {
    let events = call.host.events.clone();
    let page = call.blocking(move || events.read(&query)).await?;
    page.map_err(|error| ToolError::new(ErrorKind::Unavailable, error.to_string()))
}

/// The id of the process that a caller names. Events may be about processes that are closed.
pub(super) fn process_id(call: &Call, given: Option<String>) -> Option<String> {
    let known = given.as_deref().and_then(|given| find(call, given).ok());
    known.map(|process| process.id.to_string()).or(given)
}
