//! Why a call did not reach a server, or was not answered.

use patterm_wire::{ErrorObject, Id, reply};
use serde_json::json;

/// The JSON-RPC code of the gateway's own errors.
const GATEWAY_ERROR: i64 = -32000;

/// The code of a request that its client cancelled, as in the Language Server Protocol.
pub(crate) const REQUEST_CANCELLED: i64 = -32800;

/// An error: a message for people and models, and a kind for programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GatewayError {
    /// Its kind.
    pub kind: GatewayErrorKind,
    /// What happened, and what to do.
    pub message: String,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayErrorKind {
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
    /// The client cancelled the call.
    Cancelled,
}

impl GatewayErrorKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Ended => "server_ended",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Unknown => "not_found",
            Self::Cancelled => "cancelled",
        }
    }
}

impl GatewayError {
    /// An error.
    pub fn new(kind: GatewayErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// As a response.
    pub fn to_response(&self, id: &Id) -> Vec<u8> {
        reply::error(Some(id), &self.to_error_object())
    }

    /// As the `error` of a response.
    pub fn to_error_object(&self) -> ErrorObject {
        let code = match self.kind {
            GatewayErrorKind::Cancelled => REQUEST_CANCELLED,
            _ => GATEWAY_ERROR,
        };
        ErrorObject::new(code, self.message.clone()).with_data(json!({"kind": self.kind.as_str()}))
    }
}
