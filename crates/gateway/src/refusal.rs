//! Why a call did not reach a server, or was not answered.

use patterm_wire::{ErrorObject, Id, reply};
use serde_json::json;

/// The JSON-RPC code of the gateway's own errors.
const GATEWAY_ERROR: i64 = -32000;

/// An error: a message for people and models, and a kind for programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// What happened, and what to do.
    pub message: String,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The server could not be started, or its handshake failed.
    Unavailable,
    /// The server exited during the call.
    Ended,
    /// The call took too long.
    Timeout,
    /// A limit was reached.
    Limit,
    /// There is no server of this name.
    Unknown,
}

impl RefusalKind {
    /// The word on the wire.
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
    /// An error.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// As a response.
    pub fn to_answer(&self, id: &Id) -> Vec<u8> {
        reply::error(Some(id), &self.to_error())
    }

    /// As the `error` of a response.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(GATEWAY_ERROR, self.message.clone())
            .with_data(json!({"kind": self.kind.word()}))
    }
}
