//! Who caused an event.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who caused an event, as far as the server knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// A person, or a script that a person started outside of all panes.
    Person {
        /// What the person used.
        #[serde(default)]
        via: PersonVia,
        /// The name of the view or of the device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// An agent, or a program in its pane.
    Agent {
        /// The id of its process.
        process_id: String,
    },
    /// A timer that fired.
    Timer {
        /// Its id.
        timer_id: String,
    },
    /// An HTTP client.
    Token {
        /// The name of its token.
        name: String,
    },
    /// What the project file declares.
    ProjectFile,
    /// patterm itself, or the program of the process.
    #[default]
    System,
    /// A caller in another project's pane: it may be an agent or a person.
    Unidentified,
    /// A kind that a newer server uses, as it was stored.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// What a person used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonVia {
    /// A command in a shell.
    #[default]
    Cli,
    /// A view of a pane.
    View,
    /// A device that is connected through the network.
    Device,
    /// Something that a newer server knows.
    #[serde(untagged)]
    Other(String),
}

impl Actor {
    /// A person at a command line.
    #[must_use]
    pub fn cli() -> Self {
        Self::Person { via: PersonVia::Cli, name: None }
    }

    /// A person at a view.
    #[must_use]
    pub fn view() -> Self {
        Self::Person { via: PersonVia::View, name: None }
    }

    /// The agent in a process.
    #[must_use]
    pub fn agent(process_id: &str) -> Self {
        Self::Agent { process_id: process_id.to_owned() }
    }
}

/// A short form for people.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { name: Some(name), .. } => write!(f, "person ({name})"),
            Self::Person { .. } => f.write_str("person"),
            Self::Agent { process_id } => f.write_str(process_id),
            Self::Timer { timer_id } => f.write_str(timer_id),
            Self::Token { name } => write!(f, "token {name}"),
            Self::ProjectFile => f.write_str("project file"),
            Self::System => f.write_str("system"),
            Self::Unidentified => f.write_str("unidentified"),
            Self::Other(other) => {
                f.write_str(other.get("kind").and_then(Value::as_str).unwrap_or("?"))
            }
        }
    }
}
