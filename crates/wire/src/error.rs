//! JSON-RPC error objects and the codes the standard fixes.

use serde::Serialize;
use serde_json::Value;

/// The bytes were not JSON, or could not be taken apart into messages.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody serves that method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method exists, its parameters do not fit.
pub const INVALID_PARAMS: i64 = -32602;
/// We broke.
pub const INTERNAL_ERROR: i64 = -32603;

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorObject {
    /// One of the fixed codes, or one of the server's own from -32000 down.
    pub code: i64,
    /// What went wrong and what to do, for a person or a model.
    pub message: String,
    /// The same for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
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

    /// `-32700`, with what is wrong as data.
    pub fn parse_error(why: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, "Parse error").with_data(why.into())
    }

    /// What went wrong in particular: the data of an error with a fixed message, else its message.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.data.as_ref().and_then(Value::as_str).unwrap_or(&self.message)
    }

    /// `-32601`, with the method's name as data.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, "Method not found").with_data(method)
    }

    /// `-32602`, saying which parameter and why.
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
}
