//! Tools that type into processes and send messages to agents.

use serde::{Deserialize, Serialize};

use super::tools;

tools! {
    /// Types into a process.
    SendInput = "send_input": InputArgs => InputResult;
    /// Sends a message to an agent.
    SendMessage = "send_message": MessageArgs => MessageResult;
}

/// What to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputArgs {
    /// The process's id.
    pub process_id: String,
    /// What it is.
    #[serde(flatten)]
    pub input: TypedInput,
}

/// Text, a paste or a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TypedInput {
    /// Text, typed.
    Text {
        /// The text.
        text: String,
        /// Press Enter afterwards.
        submit: bool,
    },
    /// Text, pasted.
    Paste {
        /// The text.
        text: String,
        /// Press Enter afterwards.
        submit: bool,
    },
    /// One key.
    Key {
        /// Its name.
        key: String,
    },
}

/// The input was queued for the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputResult {
    /// Always true.
    pub ok: bool,
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageArgs {
    /// The agent's process id.
    pub target_process_id: String,
    /// The text.
    pub message: String,
}

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageResult {
    /// Whether it was delivered.
    pub receipt: ReceiptInfo,
}

/// Whether a message was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptInfo {
    /// How far it came.
    pub state: DeliveryState,
    /// What that is based on.
    pub evidence: String,
}

/// How far a message came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// The agent accepted it.
    Delivered,
    /// It waits and will be delivered.
    Queued,
    /// It was given up.
    Stalled,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

impl DeliveryState {
    /// Its name on the wire and for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Delivered => "delivered",
            Self::Queued => "queued",
            Self::Stalled => "stalled",
            Self::Other(name) => name,
        }
    }
}
