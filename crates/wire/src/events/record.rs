//! An event as it is stored and read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Actor, Fact};

/// An event. Readers must ignore types that they do not know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Its number. Numbers increase by one from event to event, even across restarts.
    pub seq: u64,
    /// When it was stored, by the wall clock.
    pub time: String,
    /// What happened, such as `agent.blocked`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The process that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// The run of that process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Who caused it.
    #[serde(default)]
    pub actor: Actor,
    /// The offset in the output of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// More about it; depends on the type.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// The server died before it stored the event; the next server found out what had happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// The hash of the previous event. It reveals damage, but not tampering by the same user.
    #[serde(default)]
    pub prev: String,
}

impl EventRecord {
    /// What happened, if this version knows the type.
    #[must_use]
    pub fn fact(&self) -> Option<Fact> {
        serde_json::from_value(json!({ "type": self.kind, "data": self.data })).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_actors_and_members_are_read() {
        let text = r#"{"seq":7,"time":"2026-11-16T09:12:03.118Z","type":"moon.risen","actor":{"kind":"tide"},
            "data":{"full":true},"prev":"00","phase":3}"#;
        let event: EventRecord = serde_json::from_str(text).unwrap();
        assert_eq!((event.seq, event.fact()), (7, None));
        assert_eq!(event.actor.to_string(), "tide");
        let actor = serde_json::to_value(&event.actor).unwrap();
        assert_eq!(actor, json!({ "kind": "tide" }));
    }

    #[test]
    fn actors_are_written_as_documented() {
        let cases = [
            (Actor::cli(), json!({ "kind": "person", "via": "cli" })),
            (Actor::agent("p3"), json!({ "kind": "agent", "process_id": "p3" })),
            (Actor::ProjectFile, json!({ "kind": "project_file" })),
            (Actor::System, json!({ "kind": "system" })),
        ];
        for (actor, value) in cases {
            assert_eq!(serde_json::to_value(&actor).unwrap(), value);
            assert_eq!(serde_json::from_value::<Actor>(value).unwrap(), actor);
        }
    }
}
