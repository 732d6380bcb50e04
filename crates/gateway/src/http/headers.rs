//! Checks that a request's headers agree with its body: intermediaries read the headers, the server
//! reads the body.

use axum::http::{HeaderMap, StatusCode};
use patterm_wire::ErrorObject;
use serde_json::json;

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
    let said = of_meta("io.modelcontextprotocol/protocolVersion")?;
    let said: String = serde_json::from_str(&text[said]).unwrap_or_default();
    if version != Some(said.as_str()) {
        return Err(mismatch(format!(
            "`MCP-Protocol-Version` is {}, but the body says {said}",
            version.unwrap_or("missing")
        )));
    }
    if said != MODERN {
        return Err(unsupported(&said, &[MODERN]));
    }
    of_meta("io.modelcontextprotocol/clientCapabilities")?;
    let named = text_of(headers, "mcp-method")?;
    if named != Some(method) {
        let named = named.unwrap_or("missing");
        return Err(mismatch(format!("`Mcp-Method` is {named}, but the body says {method}")));
    }
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let wanted = raw::at_path(text, &["params", member]);
    let wanted: Option<String> = wanted.and_then(|span| serde_json::from_str(&text[span]).ok());
    let named = text_of(headers, "mcp-name")?.map(decoded).transpose()?;
    match (wanted, named) {
        (Some(wanted), Some(named)) if wanted == named => Ok(()),
        (None, _) => Ok(()),
        (Some(wanted), named) => {
            let named = named.unwrap_or_else(|| "missing".into());
            Err(mismatch(format!("`Mcp-Name` is {named}, but the body says {wanted}")))
        }
    }
}

pub(super) fn text_of<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, ErrorObject> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(mismatch(format!("`{name}` appears twice")));
    }
    let text = value.to_str().map_err(|_| mismatch(format!("`{name}` is not plain text")))?;
    Ok(Some(text.trim()))
}

/// A value that a header cannot contain is encoded as `=?base64?…?=`.
pub(super) fn decoded(value: &str) -> Result<String, ErrorObject> {
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
    let (mut held, mut bits) = (0u32, 0);
    for letter in letters.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

pub(super) fn mismatch(why: impl Into<String>) -> ErrorObject {
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
