//! The failures of tools: a kind for programs, and a sentence that says what to do.

use patterm_wire::ErrorObject;
use patterm_wire::error::{INTERNAL_ERROR, INVALID_PARAMS, ServerEnd, Suggestion};
use serde_json::{Map, Value, json};

/// The kinds of failure, a closed list that callers may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// An argument has the wrong type or an invalid value.
    InvalidArgument,
    /// There is no such process, timer, pad or topic.
    NotFound,
    /// The caller may not do this to the process.
    NotOwner,
    /// The process must be running.
    NotRunning,
    /// The process must not be running.
    AlreadyRunning,
    /// Somebody else changed it in the meantime.
    Conflict,
    /// A limit is reached.
    Limit,
    /// It took longer than allowed.
    Timeout,
    /// It is not possible now or here.
    Unavailable,
    /// An internal error.
    Internal,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::NotOwner,
        Self::NotRunning,
        Self::AlreadyRunning,
        Self::Conflict,
        Self::Limit,
        Self::Timeout,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The name of the kind, in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::NotOwner => "not_owner",
            Self::NotRunning => "not_running",
            Self::AlreadyRunning => "already_running",
            Self::Conflict => "conflict",
            Self::Limit => "limit",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    /// The JSON-RPC error code if the tool was called as a method. These never change.
    pub fn code(self) -> i64 {
        match self {
            Self::InvalidArgument => INVALID_PARAMS,
            Self::NotFound => -32001,
            Self::NotOwner => -32002,
            Self::NotRunning => -32003,
            Self::AlreadyRunning => -32004,
            Self::Conflict => -32005,
            Self::Limit => -32006,
            Self::Timeout => -32007,
            Self::Unavailable => -32008,
            Self::Internal => INTERNAL_ERROR,
        }
    }
}

/// A tool's failure.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The kind.
    pub kind: ErrorKind,
    /// What went wrong, and what to do.
    pub message: String,
    /// Details for programs, in addition to kind and message.
    pub details: Map<String, Value>,
}

impl ToolError {
    /// A failure without details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new() }
    }

    /// An invalid argument.
    pub fn invalid(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidArgument, format!("`{field}` {why}")).with("field", field)
    }

    /// Adds a tool that would help and its purpose, as in "use TOOL to start it". The
    /// details contain reason and suggestions separately, so that clients other than models
    /// can insert their own names for the tools (see `patterm_wire::error::ErrorDetails`).
    #[must_use]
    pub fn suggest(mut self, tool: &str, purpose: &str) -> Self {
        let suggestion = Suggestion { tool: tool.to_owned(), purpose: purpose.to_owned() };
        let reason = self.details.entry("reason").or_insert_with(|| self.message.clone().into());
        let first = reason.as_str() == Some(&self.message);
        let join = if first { ";" } else { ", or" };
        self.message = format!("{}{join} use {tool} {purpose}", self.message).trim_end().to_owned();
        let suggestions = self.details.entry("suggestions").or_insert_with(|| json!([]));
        if let Value::Array(suggestions) = suggestions {
            suggestions.push(json!(suggestion));
        }
        self
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// A wait that ends without a result because the server goes away, or else because the client has closed its
    /// side.
    pub(crate) fn interrupted(end: Option<ServerEnd>, so_far: &str) -> Self {
        let message = match end {
            Some(ServerEnd::Replaced) => {
                format!("patterm's server is being replaced; {so_far}; call it again")
            }
            Some(ServerEnd::Ended) => format!("patterm's server is shutting down; {so_far}"),
            None => format!("the client is closing the connection; {so_far}"),
        };
        Self::new(ErrorKind::Unavailable, message).because_of(end)
    }

    /// Adds why the server goes away, if it does, so that a client can repeat the call.
    #[must_use]
    pub(crate) fn because_of(self, end: Option<ServerEnd>) -> Self {
        match end {
            Some(end) => self.with("server_end", json!(end)),
            None => self,
        }
    }

    /// The text for a model: the message and the kind.
    pub fn text(&self) -> String {
        format!("{} ({})", self.message, self.kind.name())
    }

    /// `{"error": {kind, message, …}}`.
    pub fn structured(&self) -> Value {
        let mut error = self.details.clone();
        error.insert("kind".into(), self.kind.name().into());
        error.insert("message".into(), self.message.clone().into());
        json!({ "error": error })
    }

    /// The failure of a tool that was called as a JSON-RPC method.
    pub fn into_rpc(self) -> ErrorObject {
        let mut data = self.details;
        data.insert("kind".into(), self.kind.name().into());
        ErrorObject::new(self.kind.code(), self.message).with_data(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_distinct_and_fixed() {
        let codes = ErrorKind::ALL.map(ErrorKind::code);
        assert_eq!(
            codes,
            [-32602, -32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32603]
        );
    }

    #[test]
    fn reason_and_suggestions_are_separate_for_other_clients() {
        let error = ToolError::new(ErrorKind::Conflict, "it exists")
            .suggest("scratchpad_write", "with its revision")
            .suggest("scratchpad_append", "");
        assert_eq!(
            error.message,
            "it exists; use scratchpad_write with its revision, or use scratchpad_append"
        );
        let details = error.into_rpc().details();
        let upper = |tool: &str| Some(tool.to_uppercase());
        assert_eq!(
            details.render(upper).unwrap(),
            "it exists; use SCRATCHPAD_WRITE with its revision, or use SCRATCHPAD_APPEND"
        );
    }

    #[test]
    fn the_two_forms_of_a_failure() {
        let error = ToolError::invalid("lines", "takes an integer");
        assert_eq!(error.text(), "`lines` takes an integer (invalid_argument)");
        assert_eq!(
            error.structured(),
            json!({"error": {"kind": "invalid_argument", "field": "lines",
                "message": "`lines` takes an integer"}})
        );
        let rpc = error.into_rpc();
        assert_eq!(rpc.code, -32602);
        assert_eq!(rpc.data, Some(json!({"kind": "invalid_argument", "field": "lines"})));
    }
}
