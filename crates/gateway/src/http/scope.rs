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

use super::{McpPeer, PendingResponse};
use crate::ambiguous::folds_to;
use crate::gateway::UsualCall;
use crate::session::UsualRequest;
use crate::{Gateway, matches_pattern, raw};

/// The code of errors that JSON-RPC has no code for.
const FORBIDDEN: i64 = -32000;

/// The method that calls a tool.
const CALL: &str = "tools/call";

/// How long a server's list of read-only tools stays valid.
const CACHE_TIME: Duration = Duration::from_secs(10);

/// Cached lists: one per server and token that were used recently.
const CACHE_SIZE: usize = 256;

/// Pages of one list: more is a list without an end.
const PAGES: usize = 100;

/// The methods that a restricted token may call. The effect of others is unknown, and
/// `logging/setLevel` can make the server more verbose.
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

/// What a token permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The servers, `patterm` for patterm's own tools; `None` for all.
    pub servers: Option<Vec<String>>,
    /// The tools of those servers; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Only tools that are marked as read-only.
    pub read_only: bool,
}

impl Scope {
    /// Whether it includes a server.
    pub fn has_server(&self, name: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|server| server == name))
    }

    /// Whether it excludes tools of a server.
    pub(super) fn is_restricted(&self) -> bool {
        self.tools.is_some() || self.read_only
    }

    /// Whether it permits a tool, by its name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| matches_pattern(tool, name)))
    }
}

/// The read-only tools, by server and token.
#[derive(Default)]
pub(super) struct ReadOnlyTools(Mutex<HashMap<String, CachedTools>>);

/// When a server was asked, and its read-only tools then.
type CachedTools = (Instant, Arc<HashSet<String>>);

impl ReadOnlyTools {
    fn get(&self, key: &str) -> Option<Arc<HashSet<String>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, tools) = known.get(key)?;
        (since.elapsed() < CACHE_TIME).then(|| tools.clone())
    }

    fn put(&self, key: &str, tools: Arc<HashSet<String>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CACHE_SIZE {
            known.clear();
        }
        known.insert(key.to_owned(), (Instant::now(), tools));
    }
}

/// A connection restricted to what the token permits and the server's settings show.
pub(super) struct RestrictedPeer {
    pub(super) peer: Arc<dyn McpPeer>,
    pub(super) gateway: Gateway,
    pub(super) server: String,
    pub(super) scope: Scope,
    pub(super) read_only: Arc<ReadOnlyTools>,
    /// The cache key: the server's and the token's name.
    pub(super) key: String,
}

impl McpPeer for RestrictedPeer {
    fn request<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> PendingResponse<'a> {
        Box::pin(async move {
            if let Err(error) = self.check(method, &text).await {
                return Ok(reply::error(Some(id), &error));
            }
            let body = self.peer.request(id, method, text).await?;
            Ok(if method == "tools/list" { self.filtered(body) } else { body })
        })
    }

    fn has_tool(&self, method: &str) -> bool {
        self.peer.has_tool(method)
    }

    fn notify(&self, message: &Message<'_>, text: &str) {
        self.peer.notify(message, text);
    }

    fn begin_usual(&self, call: &UsualRequest<'_>) -> Option<UsualCall> {
        // Whether the call is permitted may need the server's list of tools.
        if !self.is_unrestricted() {
            return None;
        }
        self.peer.begin_usual(call)
    }
}

impl RestrictedPeer {
    /// Whether nothing of the server is excluded.
    fn is_unrestricted(&self) -> bool {
        !self.scope.is_restricted() && self.gateway.shows_all_tools(&self.server)
    }

    async fn check(&self, method: &str, text: &str) -> Result<(), ErrorObject> {
        // A tool's name may also be a method, which calls that tool.
        let is_tool = !METHODS.contains(&method) && self.peer.has_tool(method);
        if self.scope.is_restricted() && !METHODS.contains(&method) && !is_tool {
            return Err(forbidden(format!("this token does not permit `{method}`")));
        }
        if self.is_unrestricted() {
            return Ok(());
        }
        if !is_tool && method != CALL {
            // A server that ignores case or blanks would take it for a call.
            return match folds_to(method.trim(), CALL) {
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
        if self.scope.read_only && !self.read_only_tools().await?.contains(&name) {
            let why =
                format!("this token is read-only, and the tool `{name}` has no `readOnlyHint`");
            return Err(forbidden(why));
        }
        Ok(())
    }

    /// The tools that are marked as read-only.
    async fn read_only_tools(&self) -> Result<Arc<HashSet<String>>, ErrorObject> {
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
            let body = self
                .peer
                .request(&id, "tools/list", text)
                .await
                .map_err(|r| r.to_error_object())?;
            let answer = String::from_utf8_lossy(&body).into_owned();
            let result = raw::member(&answer, "result").unwrap_or("{}");
            tools
                .extend(descriptors(result).into_iter().filter(|d| d.is_read_only).map(|d| d.name));
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
        if self.is_unrestricted() {
            return body;
        }
        let all = descriptors(raw::member(text, "result").unwrap_or("{}"));
        let shown = self.gateway.tools_of(&self.server);
        let may = |d: &Descriptor<'_>| {
            let is_valid =
                self.scope.has_tool(&d.name) && (d.is_read_only || !self.scope.read_only);
            is_valid && shown.shows(&d.name)
        };
        let permitted: Vec<&str> = all.iter().filter(|d| may(d)).map(|d| d.text).collect();
        raw::edited(text, vec![(span, format!("[{}]", permitted.join(",")))]).into_bytes()
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
    is_read_only: bool,
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
            Some(Descriptor { name, is_read_only: hint.as_deref() == Some("true"), text })
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
        impl McpPeer for Nobody {
            fn request<'a>(&'a self, _: &'a Id, _: &'a str, _: String) -> PendingResponse<'a> {
                Box::pin(std::future::ready(Ok(Vec::new())))
            }
            fn notify(&self, _: &Message<'_>, _: &str) {}
        }
        let restricted = |scope: Scope| RestrictedPeer {
            peer: Arc::new(Nobody),
            gateway: Gateway::default(),
            server: "x".into(),
            scope,
            read_only: Arc::default(),
            key: String::new(),
        };
        let permitted =
            r#"{"x": 12345678901234567890, "name":"a_find","annotations":{"readOnlyHint": true}}"#;
        let other = r#"{"name":"b_find","annotations":{"readOnlyHint":true}}"#;
        let writes = r#"{"name":"a_set","annotations":{"readOnlyHint":"true"}}"#;
        let body = |tools: &[&str]| {
            format!(
                r#"{{"id":1, "result":{{"v":1,"tools":[{}]}},"jsonrpc":"2.0"}}"#,
                tools.join(",")
            )
        };
        let all = body(&[permitted, other, writes]).into_bytes();
        let tools = Some(vec!["a_*".to_owned()]);
        let named = restricted(Scope { tools: tools.clone(), ..Scope::default() });
        assert_eq!(named.filtered(all.clone()), body(&[permitted, writes]).into_bytes());
        let both = restricted(Scope { tools, read_only: true, ..Scope::default() });
        assert_eq!(both.filtered(all), body(&[permitted]).into_bytes());
    }
}
