//! JSON-RPC error objects, the codes of the standard, and the details that patterm's tools add.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The input is not JSON, or cannot be split into messages.
pub const PARSE_ERROR: i64 = -32700;
/// The input is JSON but not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method's parameters are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// A bug in patterm.
pub const INTERNAL_ERROR: i64 = -32603;

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// One of the standard's codes, or one of the server's own from -32000 down.
    pub code: i64,
    /// What went wrong and what to do, for a person or a model.
    pub message: String,
    /// The same for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with data for programs.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// `-32700`, with the reason as data.
    pub fn parse_error(why: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, "Parse error").with_data(why.into())
    }

    /// The specific reason: the data of an error with a fixed message, otherwise its message.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.data.as_ref().and_then(Value::as_str).unwrap_or(&self.message)
    }

    /// `-32601`, with the method's name as data.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, "Method not found").with_data(method)
    }

    /// `-32602`; the message names the parameter.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// `-32600` for a request whose id is still in use by an earlier one.
    pub fn duplicate_id() -> Self {
        Self::new(
            INVALID_REQUEST,
            "this id belongs to a request that is still in flight; use another one",
        )
    }

    /// The details that a tool's error has for clients.
    #[must_use]
    pub fn details(&self) -> ErrorDetails {
        self.data.as_ref().and_then(|data| ErrorDetails::deserialize(data).ok()).unwrap_or_default()
    }
}

/// The parts of a tool's error. Its message is made from them for callers of tools; other clients put their
/// own words around them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// The kind of error, for example `not_running`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The argument that is invalid; the message begins with its name in backticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What went wrong, without the suggestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tools that would help, each with its purpose, in the order of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
    /// The call ended early because the server is going away. One that only reads can be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_end: Option<ServerEnd>,
}

/// Why a server is going away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerEnd {
    /// Another server takes over: everything keeps running.
    Replaced,
    /// It ends, and everything that runs in it.
    Ended,
}

/// A tool that would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The tool's name.
    pub tool: String,
    /// What for, as in "use TOOL to start it"; may be empty.
    #[serde(default)]
    pub purpose: String,
}

impl ErrorDetails {
    /// The error as one sentence: the reason, and how to go on. `name` says what the audience calls a tool;
    /// suggestions it has no name for are left out. `None` if the error has no details to make one from.
    #[must_use]
    pub fn render(&self, name: impl Fn(&str) -> Option<String>) -> Option<String> {
        let suggestion = |suggestion: &Suggestion| {
            let name = name(&suggestion.tool)?;
            Some(format!("use {name} {}", suggestion.purpose).trim_end().to_owned())
        };
        let suggestions: Vec<_> = self.suggestions.iter().filter_map(suggestion).collect();
        let reason = self.reason.clone()?;
        Some(match suggestions.is_empty() {
            true => reason,
            false => format!("{reason}; {}", suggestions.join(", or ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_rendered_for_an_audience() {
        let suggestion = |tool: &str, purpose: &str| Suggestion {
            tool: tool.to_owned(),
            purpose: purpose.to_owned(),
        };
        let details = ErrorDetails {
            reason: Some("p1 (web) is not running".to_owned()),
            suggestions: vec![suggestion("start_process", "to start it"), suggestion("x", "")],
            ..ErrorDetails::default()
        };
        let verb = |tool: &str| (tool == "start_process").then(|| "`patterm restart`".to_owned());
        assert_eq!(
            details.render(verb).as_deref(),
            Some("p1 (web) is not running; use `patterm restart` to start it")
        );
        let tool = |tool: &str| Some(tool.to_owned());
        assert_eq!(
            details.render(tool).as_deref(),
            Some("p1 (web) is not running; use start_process to start it, or use x")
        );
        assert_eq!(details.render(|_| None).as_deref(), Some("p1 (web) is not running"));
        assert_eq!(ErrorDetails::default().render(tool), None);
    }
}
