//! The screens of several processes at one moment of the past, for a client that goes back and forth in time. A request
//! says where the client is and how it moves on; the answer says where that led.

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// Shows processes as they were at a moment.
#[derive(Debug)]
pub enum ReadPast {}

impl Method for ReadPast {
    const NAME: &'static str = "patterm/past";
    type Params = PastRequest;
    type Result = PastResult;
}

/// Which processes to show, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRequest {
    /// Their ids.
    pub processes: Vec<String>,
    /// Where the steps begin, in milliseconds since 1970; now, if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<u64>,
    /// The steps from there, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PastStep>,
}

/// A step through time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum PastStep {
    /// To a time.
    To {
        /// Milliseconds since 1970.
        at_ms: u64,
    },
    /// By a duration.
    By {
        /// Milliseconds; back if they are negative.
        ms: i64,
    },
    /// To where one of the processes began.
    Beginning,
    /// To the present.
    Now,
    /// To where a screen changes.
    Change {
        /// To the one before or after.
        direction: PastDirection,
    },
    /// To an event.
    Event {
        /// Which events count.
        group: EventGroup,
        /// To the one before or after.
        direction: PastDirection,
    },
    /// To a line of output with a text.
    Search {
        /// The text. Capital letters only matter if it has some.
        text: String,
        /// To the one before or after.
        direction: PastDirection,
    },
}

/// A direction in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PastDirection {
    /// Towards the beginning.
    Back,
    /// Towards now.
    Forward,
}

/// Events that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventGroup {
    /// All that are about what is shown.
    All,
    /// Messages to and from the processes.
    Messages,
    /// Changes of the states of processes and agents.
    States,
    /// What needed a person.
    Attention,
}

/// The screens at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastResult {
    /// The moment, in milliseconds since 1970.
    pub at_ms: u64,
    /// The present.
    pub now_ms: u64,
    /// The earliest moment of which anything is known.
    pub first_ms: u64,
    /// The processes, in the order of the request.
    pub screens: Vec<PastScreen>,
    /// What was found there, if the last step led to an event or to a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PastPlace>,
    /// The last step found nothing; the moment is the one before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_missed: bool,
    /// The clock was set back: it showed the time to which the last step led once more, and by the clock of the logs, that
    /// is this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_ms: Option<u64>,
}

/// An event, or a line of output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastPlace {
    /// The process that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// Where it is in the output of that process, which is shown up to there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The type of the event, such as `agent.blocked`; missing for a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// More about the event, or the line.
    #[serde(default)]
    pub text: String,
}

/// A process at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastScreen {
    /// Its id.
    pub process_id: String,
    /// Its screen then.
    #[serde(flatten)]
    pub state: PastState,
}

/// What a process showed at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PastState {
    /// Its screen.
    Shown {
        /// The height.
        rows: u16,
        /// The width.
        columns: u16,
        /// The output before this offset is on it.
        offset: u64,
        /// Bytes that draw it on an empty screen of that size, in base64.
        bytes: String,
    },
    /// It was not started yet.
    NotStarted {
        /// When it was, in milliseconds since 1970, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_ms: Option<u64>,
    },
    /// Its output of that time was dropped, because logs have a limited size.
    Dropped {
        /// The earliest time of which there is some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_ms: Option<u64>,
    },
    /// It has no output, or is not known.
    Nothing,
    /// Something that a newer server knows.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_screens_are_read_as_they_were_written() {
        let back = PastDirection::Back;
        let request = PastRequest {
            processes: vec!["p1".into()],
            from_ms: Some(7),
            steps: vec![
                PastStep::By { ms: -1_000 },
                PastStep::Beginning,
                PastStep::Event { group: EventGroup::Messages, direction: back },
                PastStep::Search { text: "x".into(), direction: PastDirection::Forward },
            ],
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(text.contains(r#"{"step":"by","ms":-1000},{"step":"beginning"}"#), "{text}");
        assert_eq!(serde_json::from_str::<PastRequest>(&text).unwrap(), request);
        let states = [
            PastState::Shown { rows: 1, columns: 2, offset: 3, bytes: "eA==".into() },
            PastState::NotStarted { started_ms: Some(9) },
            PastState::Nothing,
        ];
        for state in states {
            let screen = PastScreen { process_id: "p1".into(), state };
            let text = serde_json::to_string(&screen).unwrap();
            assert_eq!(serde_json::from_str::<PastScreen>(&text).unwrap(), screen);
        }
        let newer = r#"{"process_id":"p1","state":"dreamt"}"#;
        let screen: PastScreen = serde_json::from_str(newer).unwrap();
        assert_eq!(screen.state, PastState::Unknown);
    }
}
