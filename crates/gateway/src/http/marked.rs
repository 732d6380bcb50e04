//! Arguments that are repeated in headers: a tool's schema marks them with `x-mcp-header`, and
//! intermediaries read `Mcp-Param-…`. The marks are learnt from the lists of tools that pass;
//! before that they are unknown.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use axum::http::HeaderMap;
use patterm_wire::ErrorObject;
use serde_json::Value;

use super::headers::{decoded, mismatch, text_of};
use crate::raw;

/// The mark in a schema.
const MARK: &str = "x-mcp-header";

/// Tools with marks kept per server: a list may have no end.
const TOOLS: usize = 1_024;

/// The depth of nested arguments.
const DEPTH: usize = 8;

/// A marked argument: its path, and the name of its header.
#[derive(Debug, PartialEq, Eq)]
struct Argument {
    path: Vec<String>,
    header: String,
}

/// The marked arguments, by server and tool.
#[derive(Debug, Default)]
pub(super) struct Marked(RwLock<HashMap<String, HashMap<String, Vec<Argument>>>>);

impl Marked {
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
fn marks(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Argument>) {
    if path.len() >= DEPTH {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = property[MARK].as_str() {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            found.push(Argument { path: path.clone(), header });
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
        let marked = Marked::default();
        let list = br#"{"result":{"tools":[{"name":"t","inputSchema":{"properties":{
            "a":{"type":"string","x-mcp-header":"Region"},
            "b":{"properties":{"c":{"type":"number","x-mcp-header":"Count"}}}}}}]}}"#;
        marked.learn("s", list);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let text = format!(r#"{{"params":{{"name":"t","arguments":{arguments}}}}}"#);
        assert_eq!(marked.check("s", &map, &text).is_ok(), accepted, "{arguments} {headers:?}");
        assert!(marked.check("another", &map, &text).is_ok());
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
