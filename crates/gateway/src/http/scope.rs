//! Restricts a connection to what its token permits. Permissions are checked on the body, which is
//! what the server reads; headers are for intermediaries.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use patterm_wire::{ErrorObject, Id, Message, reply};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::guard::Scope;
use super::{Asked, Talk};
use crate::ambiguous::is_taken_for;
use crate::{Gateway, fits, raw};

/// The code of errors that JSON-RPC has no code for.
const FORBIDDEN: i64 = -32000;

/// The method that calls a tool.
const CALL: &str = "tools/call";

/// How long a server's list of read-only tools stays valid.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// Cached lists: one per server and token that were used recently.
const KNOWN: usize = 256;

/// Pages of one list: more is a list without an end.
const PAGES: usize = 100;

/// The methods that a restricted token may call. The effect of others is unknown, and
/// `logging/setLevel` changes the server for all of its clients.
const METHODS: [&str; 19] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
];

impl Scope {
    /// Whether it excludes tools of a server.
    pub(super) fn is_narrow(&self) -> bool {
        self.tools.is_some() || self.read_only
    }

    /// Whether it permits a tool, by its name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| fits(tool, name)))
    }
}

/// The read-only tools, by server and token.
#[derive(Default)]
pub(super) struct ReadOnly(Mutex<HashMap<String, Known>>);

/// When a server was asked, and its read-only tools then.
type Known = (Instant, Arc<HashSet<String>>);

impl ReadOnly {
    fn get(&self, key: &str) -> Option<Arc<HashSet<String>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, tools) = known.get(key)?;
        (since.elapsed() < KNOWN_FOR).then(|| tools.clone())
    }

    fn put(&self, key: &str, tools: Arc<HashSet<String>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(key.to_owned(), (Instant::now(), tools));
    }
}

/// A connection restricted to what the token permits and the server's settings show.
pub(super) struct Scoped {
    pub(super) talk: Arc<dyn Talk>,
    pub(super) gateway: Gateway,
    pub(super) server: String,
    pub(super) scope: Scope,
    pub(super) read_only: Arc<ReadOnly>,
    /// The cache key: the server's and the token's name.
    pub(super) key: String,
}

impl Talk for Scoped {
    fn ask<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> Asked<'a> {
        Box::pin(async move {
            if let Err(error) = self.check(method, &text).await {
                return Ok(reply::error(Some(id), &error));
            }
            let body = self.talk.ask(id, method, text).await?;
            Ok(if method == "tools/list" { self.filtered(body) } else { body })
        })
    }

    fn has_tool(&self, method: &str) -> bool {
        self.talk.has_tool(method)
    }

    fn tell(&self, message: &Message<'_>, text: &str) {
        self.talk.tell(message, text);
    }
}

impl Scoped {
    /// Whether nothing of the server is excluded.
    fn is_whole(&self) -> bool {
        !self.scope.is_narrow() && self.gateway.tools_of(&self.server).shows_all()
    }

    async fn check(&self, method: &str, text: &str) -> Result<(), ErrorObject> {
        // A tool's name may also be a method, which calls that tool.
        let is_tool = !METHODS.contains(&method) && self.talk.has_tool(method);
        if self.scope.is_narrow() && !METHODS.contains(&method) && !is_tool {
            return Err(forbidden(format!("this token does not permit `{method}`")));
        }
        if self.is_whole() {
            return Ok(());
        }
        if !is_tool && method != CALL {
            // A server that ignores case or blanks would take it for a call.
            return match is_taken_for(method.trim(), CALL) {
                true => Err(ErrorObject::method_not_found(method)),
                false => Ok(()),
            };
        }
        let name = if is_tool { method.to_owned() } else { named_tool(text)? };
        if !self.gateway.tools_of(&self.server).shows(&name) {
            let why = format!("unknown tool `{name}`; tools/list returns the known ones");
            return Err(ErrorObject::invalid_params(why));
        }
        if !self.scope.has_tool(&name) {
            return Err(forbidden(format!("this token does not permit the tool `{name}`")));
        }
        if self.scope.read_only && !self.tools_that_read().await?.contains(&name) {
            let why =
                format!("this token is read-only, and the tool `{name}` has no `readOnlyHint`");
            return Err(forbidden(why));
        }
        Ok(())
    }

    /// The tools that are marked as read-only.
    async fn tools_that_read(&self) -> Result<Arc<HashSet<String>>, ErrorObject> {
        if let Some(known) = self.read_only.get(&self.key) {
            return Ok(known);
        }
        let mut tools = HashSet::new();
        let mut cursor: Option<String> = None;
        for page in 0..PAGES {
            let id = Id::from_text(&format!("patterm-which-tools-read-{page}"));
            let params = cursor.map_or("{}".into(), |cursor| format!("{{\"cursor\":{cursor}}}"));
            let text = reply::request(&id, "tools/list", Some(&params));
            let text = String::from_utf8_lossy(&text).into_owned();
            let body = self.talk.ask(&id, "tools/list", text).await.map_err(|r| r.to_error())?;
            let answer = String::from_utf8_lossy(&body).into_owned();
            let result = raw::member(&answer, "result").unwrap_or("{}");
            tools.extend(descriptors(result).into_iter().filter(|d| d.reads).map(|d| d.name));
            match raw::member(result, "nextCursor").filter(|next| *next != "null") {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        let tools = Arc::new(tools);
        self.read_only.put(&self.key, tools.clone());
        Ok(tools)
    }

    /// A response without the tools that are not permitted; the others are unchanged byte for byte.
    fn filtered(&self, body: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&body) else { return body };
        let Some(span) = raw::at_path(text, &["result", "tools"]) else { return body };
        if self.is_whole() {
            return body;
        }
        let all = descriptors(raw::member(text, "result").unwrap_or("{}"));
        let shown = self.gateway.tools_of(&self.server);
        let may = |d: &Descriptor<'_>| {
            let is_good = self.scope.has_tool(&d.name) && (d.reads || !self.scope.read_only);
            is_good && shown.shows(&d.name)
        };
        let kept: Vec<&str> = all.iter().filter(|d| may(d)).map(|d| d.text).collect();
        raw::edited(text, vec![(span, format!("[{}]", kept.join(",")))]).into_bytes()
    }
}

/// The tool that a `tools/call` names.
fn named_tool(text: &str) -> Result<String, ErrorObject> {
    /// A duplicate member is an error: it is unknown which one the server uses.
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let params = raw::member(text, "params").unwrap_or("null");
    let Named { name } = serde_json::from_str(params)
        .map_err(|e| ErrorObject::invalid_params(format!("`params.name` must name a tool: {e}")))?;
    Ok(name)
}

/// A tool in a list.
struct Descriptor<'a> {
    name: String,
    reads: bool,
    text: &'a str,
}

fn descriptors(result: &str) -> Vec<Descriptor<'_>> {
    let tools = raw::member(result, "tools").unwrap_or("[]");
    let list: Vec<&RawValue> = serde_json::from_str(tools).unwrap_or_default();
    let read =
        |text: &str, path: &[&str]| raw::at_path(text, path).map(|span| text[span].to_owned());
    list.into_iter()
        .filter_map(|tool| {
            let text = tool.get();
            let name = serde_json::from_str(&read(text, &["name"])?).ok()?;
            let hint = read(text, &["annotations", "readOnlyHint"]);
            Some(Descriptor { name, reads: hint.as_deref() == Some("true"), text })
        })
        .collect()
}

fn forbidden(why: String) -> ErrorObject {
    ErrorObject::new(FORBIDDEN, why).with_data(json!({"kind": "forbidden"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permitted_tools_stay_in_a_list_byte_for_byte() {
        struct Nobody;
        impl Talk for Nobody {
            fn ask<'a>(&'a self, _: &'a Id, _: &'a str, _: String) -> Asked<'a> {
                Box::pin(std::future::ready(Ok(Vec::new())))
            }
            fn tell(&self, _: &Message<'_>, _: &str) {}
        }
        let scoped = |scope: Scope| Scoped {
            talk: Arc::new(Nobody),
            gateway: Gateway::default(),
            server: "x".into(),
            scope,
            read_only: Arc::default(),
            key: String::new(),
        };
        let kept =
            r#"{"x": 12345678901234567890, "name":"a_find","annotations":{"readOnlyHint": true}}"#;
        let other = r#"{"name":"b_find","annotations":{"readOnlyHint":true}}"#;
        let writes = r#"{"name":"a_set","annotations":{"readOnlyHint":"true"}}"#;
        let body = |tools: &[&str]| {
            format!(
                r#"{{"id":1, "result":{{"v":1,"tools":[{}]}},"jsonrpc":"2.0"}}"#,
                tools.join(",")
            )
        };
        let all = body(&[kept, other, writes]).into_bytes();
        let tools = Some(vec!["a_*".to_owned()]);
        let named = scoped(Scope { tools: tools.clone(), ..Scope::default() });
        assert_eq!(named.filtered(all.clone()), body(&[kept, writes]).into_bytes());
        let both = scoped(Scope { tools, read_only: true, ..Scope::default() });
        assert_eq!(both.filtered(all), body(&[kept]).into_bytes());
    }
}
