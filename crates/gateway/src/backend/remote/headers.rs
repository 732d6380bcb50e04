//! The headers of the stateless era.

use axum::http::{HeaderMap, HeaderValue};

use crate::raw;

/// Sets the headers of the stateless era from the body.
pub(super) fn stateless_headers(headers: &mut HeaderMap, line: &str) {
    let text = |path: &[&str]| -> Option<String> {
        let span = raw::at_path(line, path)?;
        serde_json::from_str(&line[span]).ok()
    };
    let mut put = |name: &'static str, value: Option<String>| {
        let value = value.and_then(|value| HeaderValue::from_str(&plain(value)).ok());
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    let method = text(&["method"]);
    let member = match method.as_deref() {
        Some("tools/call" | "prompts/get") => Some("name"),
        Some("resources/read") => Some("uri"),
        _ => None,
    };
    put("mcp-name", member.and_then(|member| text(&["params", member])));
    put("mcp-method", method);
    let version = text(&["params", "_meta", "io.modelcontextprotocol/protocolVersion"]);
    put("mcp-protocol-version", version);
}

/// A value that a header cannot contain is encoded as `=?base64?…?=`.
fn plain(value: String) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    match is_plain {
        true => value,
        false => format!("=?base64?{}?=", patterm_wire::base64::encode(value.as_bytes())),
    }
}
