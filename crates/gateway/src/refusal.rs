//! Why a call did not reach a server, or was not answered by it.

use patterm_wire::{ErrorObject, Id, reply};
use serde_json::json;

/// The code of errors that are the gateway's own.
const GATEWAY_ERROR: i64 = -32000;

/// Why, for a person or a model, and as a word for programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind.
    pub kind: RefusalKind,
    /// What happened, and what to do.
    pub message: String,
}

/// Kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The server could not be started, or its handshake failed.
    Unavailable,
    /// The server ended while the call was on its way.
    Ended,
    /// The call took longer than it may.
    Timeout,
    /// A ceiling is reached.
    Limit,
    /// There is no server of this name.
    Unknown,
}

impl RefusalKind {
    /// The word that programs see.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Ended => "server_ended",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Unknown => "not_found",
        }
    }
}

impl Refusal {
    /// A refusal.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// As an answer.
    pub fn to_answer(&self, id: &Id) -> Vec<u8> {
        reply::error(Some(id), &self.to_error())
    }

    /// As the `error` of an answer.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(GATEWAY_ERROR, self.message.clone())
            .with_data(json!({"kind": self.kind.word()}))
    }
}
