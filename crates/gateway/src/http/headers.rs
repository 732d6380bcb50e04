//! Checks that a request's headers agree with its body: intermediaries read the headers, the server
//! reads the body. That includes arguments that a tool's schema marks with `x-mcp-header`, which are
//! repeated as `Mcp-Param-…`. The marks are learnt from the lists of tools that pass; before that they
//! are unknown.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use axum::http::{HeaderMap, StatusCode};
use patterm_wire::ErrorObject;
use serde_json::{Value, json};

use crate::raw;
use crate::relay::{Era, MODERN, REVISIONS};

const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;

const VERSION: &str = "mcp-protocol-version";

/// Checks a request's headers.
pub(super) fn check(
    headers: &HeaderMap,
    era: Era,
    method: &str,
    text: &str,
) -> Result<(), ErrorObject> {
    let version = text_of(headers, VERSION)?;
    if era == Era::Legacy && version != Some(MODERN) {
        return match version.filter(|version| !REVISIONS.contains(version)) {
            Some(version) => Err(unsupported(version, &REVISIONS)),
            None => Ok(()),
        };
    }
    let of_meta = |name: &str| {
        let span = raw::at_path(text, &["params", "_meta", name]);
        span.ok_or_else(|| ErrorObject::invalid_params(format!("`_meta` has no `{name}`")))
    };
    let body_version = of_meta("io.modelcontextprotocol/protocolVersion")?;
    let body_version: String = serde_json::from_str(&text[body_version]).unwrap_or_default();
    if version != Some(body_version.as_str()) {
        return Err(mismatch(format!(
            "`MCP-Protocol-Version` is {}, but the body says {body_version}",
            version.unwrap_or("missing")
        )));
    }
    if body_version != MODERN {
        return Err(unsupported(&body_version, &[MODERN]));
    }
    of_meta("io.modelcontextprotocol/clientCapabilities")?;
    let header_name = text_of(headers, "mcp-method")?;
    if header_name != Some(method) {
        let header_name = header_name.unwrap_or("missing");
        return Err(mismatch(format!("`Mcp-Method` is {header_name}, but the body says {method}")));
    }
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let body_name = raw::at_path(text, &["params", member]);
    let body_name: Option<String> =
        body_name.and_then(|span| serde_json::from_str(&text[span]).ok());
    let header_name = text_of(headers, "mcp-name")?.map(decoded).transpose()?;
    match (body_name, header_name) {
        (Some(body_name), Some(header_name)) if body_name == header_name => Ok(()),
        (None, _) => Ok(()),
        (Some(body_name), header_name) => {
            let header_name = header_name.unwrap_or_else(|| "missing".into());
            Err(mismatch(format!("`Mcp-Name` is {header_name}, but the body says {body_name}")))
        }
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ErrorObject> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(mismatch(format!("`{name}` appears twice")));
    }
    let text = value.to_str().map_err(|_| mismatch(format!("`{name}` is not plain text")))?;
    Ok(Some(text.trim()))
}

/// A value that a header cannot contain is encoded as `=?base64?…?=`.
fn decoded(value: &str) -> Result<String, ErrorObject> {
    let wrapped = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?="));
    let Some(wrapped) = wrapped else { return Ok(value.to_owned()) };
    let bytes = base64(wrapped);
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("{value} is not valid Base64")))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    // Padded to groups of four, and no further.
    if !text.len().is_multiple_of(4) || text.len() - letters.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut accumulator, mut bits) = (0u32, 0);
    for letter in letters.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        accumulator = accumulator << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((accumulator >> bits) as u8);
            accumulator &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

fn mismatch(why: impl Into<String>) -> ErrorObject {
    ErrorObject::new(HEADER_MISMATCH, why)
}

fn unsupported(version: &str, supported: &[&str]) -> ErrorObject {
    let why = format!("revision {version} is not supported");
    ErrorObject::new(UNSUPPORTED_VERSION, why)
        .with_data(json!({"supported": supported, "requested": version}))
}

/// The HTTP status of a response: the stateless era maps some errors to it.
pub(super) fn status(era: Era, body: &[u8]) -> StatusCode {
    if era == Era::Legacy {
        return StatusCode::OK;
    }
    let code = std::str::from_utf8(body).ok().and_then(|text| {
        let span = raw::at_path(text, &["error", "code"])?;
        text[span].parse::<i64>().ok()
    });
    match code {
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        Some(-32601) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// The mark in a schema.
const MARK: &str = "x-mcp-header";

/// Tools with marks kept per server: a list may have no end.
const TOOLS: usize = 1_024;

/// The depth of nested arguments.
const DEPTH: usize = 8;

/// A marked argument: its path, and the name of its header.
#[derive(Debug, PartialEq, Eq)]
struct ParamHeader {
    path: Vec<String>,
    header: String,
}

/// The marked arguments, by server and tool.
#[derive(Debug, Default)]
pub(super) struct ParamHeaders(RwLock<HashMap<String, HashMap<String, Vec<ParamHeader>>>>);

impl ParamHeaders {
    /// Whether no argument of a server's tools is marked.
    pub(super) fn is_empty(&self, server: &str) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(server).is_none_or(HashMap::is_empty)
    }

    /// Learns the marks from a server's list of tools.
    pub(super) fn learn(&self, server: &str, body: &[u8]) {
        if memchr::memmem::find(body, MARK.as_bytes()).is_none() {
            return;
        }
        let Ok(answer) = serde_json::from_slice::<Value>(body) else { return };
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(server.to_owned()).or_default();
        for tool in answer["result"]["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            let mut arguments = Vec::new();
            marks(&tool["inputSchema"], &mut Vec::new(), &mut arguments);
            if arguments.is_empty() {
                known.remove(name);
            } else if known.len() < TOOLS || known.contains_key(name) {
                known.insert(name.to_owned(), arguments);
            }
        }
    }

    /// Checks that a call's headers agree with its body.
    pub(super) fn check(
        &self,
        server: &str,
        headers: &HeaderMap,
        text: &str,
    ) -> Result<(), ErrorObject> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(tools) = known.get(server).filter(|tools| !tools.is_empty()) else {
            return Ok(());
        };
        let name = raw::at_path(text, &["params", "name"]);
        let name: Option<String> = name.and_then(|span| serde_json::from_str(&text[span]).ok());
        let arguments = name.and_then(|name| tools.get(&name));
        for argument in arguments.into_iter().flatten() {
            let mut path = vec!["params", "arguments"];
            path.extend(argument.path.iter().map(String::as_str));
            if raw::is_ambiguous(text, &path) {
                let why = format!("`{}` appears twice in the body", path.join("."));
                return Err(mismatch(why));
            }
            let body = raw::at_path(text, &path).map(|span| &text[span]);
            let body = body.filter(|body| *body != "null");
            let header = text_of(headers, &argument.header)?.map(decoded).transpose()?;
            if !same(body, header.as_deref()) {
                return Err(mismatch(format!(
                    "`{}` is {}, but the body says {}",
                    argument.header,
                    header.as_deref().unwrap_or("missing"),
                    body.unwrap_or("nothing")
                )));
            }
        }
        Ok(())
    }
}

/// Finds the marks of a schema.
fn marks(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    if path.len() >= DEPTH {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = property[MARK].as_str() {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            found.push(ParamHeader { path: path.clone(), header });
        }
        marks(property, path, found);
        path.pop();
    }
}

/// Whether a JSON value equals a header's value.
fn same(body: Option<&str>, header: Option<&str>) -> bool {
    let (Some(body), Some(header)) = (body, header) else {
        return body.is_none() == header.is_none();
    };
    match serde_json::from_str(body) {
        Ok(Value::String(text)) => text == header,
        Ok(Value::Number(number)) => {
            // A number can be written in several ways.
            body == header || number.as_f64().is_some_and(|n| header.parse() == Ok(n))
        }
        _ => body == header,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(arguments: &str, headers: &[(&'static str, &str)], accepted: bool) {
        let param_headers = ParamHeaders::default();
        let list = br#"{"result":{"tools":[{"name":"t","inputSchema":{"properties":{
            "a":{"type":"string","x-mcp-header":"Region"},
            "b":{"properties":{"c":{"type":"number","x-mcp-header":"Count"}}}}}}]}}"#;
        param_headers.learn("s", list);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let text = format!(r#"{{"params":{{"name":"t","arguments":{arguments}}}}}"#);
        assert_eq!(
            param_headers.check("s", &map, &text).is_ok(),
            accepted,
            "{arguments} {headers:?}"
        );
        assert!(param_headers.check("another", &map, &text).is_ok());
    }

    #[test]
    fn marked_arguments_must_agree_with_headers() {
        check("{}", &[], true);
        check(r#"{"a":null}"#, &[], true);
        check(r#"{"a":"x"}"#, &[("mcp-param-region", "x")], true);
        check(r#"{"a":"H\u0065llo"}"#, &[("mcp-param-region", "=?base64?SGVsbG8=?=")], true);
        check(r#"{"b":{"c":42}}"#, &[("mcp-param-count", "42.0")], true);
        check(r#"{"a":"x"}"#, &[], false);
        check(r#"{"a":"x","a":"y"}"#, &[("mcp-param-region", "x")], false);
        check(r#"{"a":"x"}"#, &[("mcp-param-region", "y")], false);
        check("{}", &[("mcp-param-region", "x")], false);
        check(r#"{"a":"Hello"}"#, &[("mcp-param-region", "=?base64?SGVsbG8?=")], false);
        check(r#"{"b":{"c":42}}"#, &[("mcp-param-count", "43")], false);
    }
}
