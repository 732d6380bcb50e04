//! The tools of all shared servers as agents see them: the servers' own descriptors under unique
//! names. Each list is fetched once, and again when its server reports a change.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::{Id, reply};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::gateway::{Caller, ClientHandle, Gateway};
use crate::{Notification, names, raw};

/// Pages of one server's list: more is a list without an end.
const PAGES: usize = 100;

/// A server that failed to list its tools is asked again after this pause, doubled each time up to
/// the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The longest list that is stored for later runs: forty tools take 40 kB.
const KEPT_BYTES: usize = 1 << 20;

/// A tool of a shared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedTool {
    /// Its name for callers.
    pub name: String,
    /// The server it belongs to.
    pub server: String,
    /// Its name on the server.
    pub tool: String,
    /// Its server marks it as read-only.
    pub read_only: bool,
    /// Its descriptor under the name for callers.
    pub descriptor: String,
}

impl SharedTool {
    /// Its descriptor under the server's own name.
    fn original_descriptor(&self) -> String {
        match raw::at_path(&self.descriptor, &["name"]) {
            Some(span) => raw::edited(&self.descriptor, vec![(span, raw::quoted(&self.tool))]),
            None => self.descriptor.clone(),
        }
    }
}

/// The known tools of all servers.
#[derive(Clone)]
pub struct Catalogue(Arc<Inner>);

/// A server's list.
#[derive(Debug, Clone)]
struct ToolList {
    tools: Arc<Vec<SharedTool>>,
    /// The list was fetched during this run of patterm's server; otherwise it is the last list of
    /// an earlier run.
    is_fresh: bool,
}

struct Inner {
    gateway: Gateway,
    known: Mutex<BTreeMap<String, ToolList>>,
    fetching: Mutex<HashSet<String>>,
    /// Why listing failed, by server.
    errors: Mutex<BTreeMap<String, String>>,
    /// The number of changes.
    changes: watch::Sender<u64>,
}

impl Catalogue {
    /// An empty catalogue.
    pub fn new(gateway: Gateway) -> Self {
        let inner = Inner {
            gateway,
            known: Mutex::default(),
            fetching: Mutex::default(),
            errors: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        Self(Arc::new(inner))
    }

    /// Changes whenever a list changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Drops what is known about servers that were removed or changed.
    pub fn forget(&self, of: impl Fn(&str) -> bool) {
        self.known().retain(|server, _| !of(server));
        self.errors().retain(|server, _| !of(server));
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether anybody watches for changes.
    pub fn has_listeners(&self) -> bool {
        self.0.changes.receiver_count() > 0
    }

    /// All known tools, sorted by name. Servers that were not asked during this run are asked now
    /// and waited for, up to `limit`, unless their list is known from an earlier run. A list that
    /// arrives later, and differs, is reported as a change.
    pub async fn tools(&self, caller: &Caller, limit: Duration) -> Vec<SharedTool> {
        let mut fetches = JoinSet::new();
        self.load_cached();
        for server in self.0.gateway.names() {
            if !self.is_fresh(&server) && self.fetching().insert(server.clone()) {
                fetches.spawn(self.clone().follow(server, caller.clone()));
            }
        }
        // Another caller may be fetching already.
        let mut changes = self.changes();
        let complete = async {
            loop {
                let waited = |server: &String| {
                    self.fetching().contains(server) && !self.known().contains_key(server)
                };
                if !self.0.gateway.names().iter().any(waited) {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = timeout(limit, complete).await;
        fetches.detach_all();
        self.known_tools()
    }

    /// All known tools, sorted by name, without asking any server.
    pub fn known_tools(&self) -> Vec<SharedTool> {
        self.load_cached();
        let names = self.0.gateway.names();
        let known = self.known();
        known
            .iter()
            .filter(|(server, _)| names.contains(server))
            .flat_map(|(_, list)| list.tools.iter().cloned())
            .collect()
    }

    /// How many tools a server has, once its list is known.
    pub fn count(&self, server: &str) -> Option<usize> {
        self.known().get(server).map(|list| list.tools.len())
    }

    /// Why a server failed to list its tools when it was last asked.
    pub fn error(&self, server: &str) -> Option<String> {
        self.errors().get(server).cloned()
    }

    /// A tool by name, if its server's list is known.
    pub fn find(&self, name: &str) -> Option<SharedTool> {
        self.load_cached();
        let known = self.known();
        let mut tools = known.values().flat_map(|list| list.tools.iter());
        tools.find(|tool| tool.name == name).cloned()
    }

    /// Uses the lists of an earlier run for servers whose lists are unknown.
    fn load_cached(&self) {
        for server in self.0.gateway.names() {
            if self.known().contains_key(&server) {
                continue;
            }
            let known = self.0.gateway.cached(&server).and_then(|known| known.tools);
            if let Some(descriptors) = known {
                let tools =
                    descriptors.iter().filter_map(|text| shared_tool(&server, text)).collect();
                let list = ToolList { tools: Arc::new(tools), is_fresh: false };
                self.known().entry(server).or_insert(list);
            }
        }
    }

    fn is_fresh(&self, server: &str) -> bool {
        self.known().get(server).is_some_and(|list| list.is_fresh)
    }

    /// Fetches a server's tools, and again each time it reports a change.
    async fn follow(self, server: String, caller: Caller) {
        let client = self.0.gateway.connect(&server, &caller);
        let (client, mut notifications) = match client {
            Ok(client) => client,
            Err(error) => return self.fetched(&server, Err(error.message)),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let tools = fetch(&server, &client).await;
            let failed = tools.is_err();
            self.fetched(&server, tools);
            if failed {
                // The caller did not wait; it is informed once the list is there.
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                let others = self.is_fresh(&server) || !self.fetching().insert(server.clone());
                if others || !self.0.gateway.names().contains(&server) {
                    return;
                }
            } else if !changed(&mut notifications).await {
                return;
            }
        }
    }

    fn fetched(&self, server: &str, tools: Result<Vec<SharedTool>, String>) {
        self.fetching().remove(server);
        match tools {
            Ok(tools) => {
                self.errors().remove(server);
                let descriptors: Vec<_> =
                    tools.iter().map(SharedTool::original_descriptor).collect();
                let bytes: usize = descriptors.iter().map(String::len).sum();
                self.0.gateway.update_cache(server, |known| {
                    known.tools = (bytes <= KEPT_BYTES).then(|| descriptors.clone());
                });
                let list = ToolList { tools: Arc::new(tools), is_fresh: true };
                self.known().insert(server.to_owned(), list);
            }
            Err(why) => {
                tracing::warn!(server, why, "failed to list a shared server's tools");
                self.errors().insert(server.to_owned(), why);
            }
        }
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, ToolList>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn errors(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetching(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a server reports that its tools changed; `false` when its session ended.
async fn changed(notifications: &mut mpsc::Receiver<Notification>) -> bool {
    while let Some(notifications) = notifications.recv().await {
        if raw::member(&notifications.text, "method")
            == Some("\"notifications/tools/list_changed\"")
        {
            return true;
        }
    }
    false
}

/// All pages of a server's list, or why there is none.
async fn fetch(server: &str, client: &ClientHandle) -> Result<Vec<SharedTool>, String> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for page in 0..PAGES {
        let id = Id::from_number(u64::try_from(page).unwrap_or_default());
        let params = cursor.map_or("{}".into(), |cursor| format!("{{\"cursor\":{cursor}}}"));
        let text = reply::request(&id, "tools/list", Some(&params));
        let text = String::from_utf8_lossy(&text).into_owned();
        let answer = client.request(&id, "tools/list", text).await;
        let answer = answer.map_err(|error| error.message)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some(result) = raw::member(&answer, "result") else {
            return check_no_tools(&answer).map(|()| tools);
        };
        let list = raw::member(result, "tools").unwrap_or("null");
        let list: Vec<&RawValue> = serde_json::from_str(list)
            .map_err(|e| format!("its tools/list result contains no list of tools: {e}"))?;
        tools.extend(list.iter().filter_map(|tool| shared_tool(server, tool.get())));
        match raw::member(result, "nextCursor").filter(|next| *next != "null") {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(tools),
        }
    }
    Ok(tools)
}

/// `Ok` if an error says that the server has no tools at all, otherwise its message.
fn check_no_tools(answer: &str) -> Result<(), String> {
    let part = |name| raw::at_path(answer, &["error", name]).map(|span| &answer[span]);
    if part("code").and_then(|code| code.parse().ok()) == Some(METHOD_NOT_FOUND) {
        return Ok(());
    }
    let message_text = part("message").and_then(|message| serde_json::from_str(message).ok());
    Err(message_text.unwrap_or_else(|| "it answered tools/list with an error".into()))
}

fn shared_tool(server: &str, descriptor: &str) -> Option<SharedTool> {
    let span = raw::at_path(descriptor, &["name"])?;
    let tool: String = serde_json::from_str(&descriptor[span.clone()]).ok()?;
    let name = names::tool_name(server, &tool);
    let read_only = raw::at_path(descriptor, &["annotations", "readOnlyHint"]);
    let read_only = read_only.is_some_and(|span| &descriptor[span] == "true");
    let descriptor = raw::edited(descriptor, vec![(span, raw::quoted(&name))]);
    Some(SharedTool { name, server: server.to_owned(), tool, read_only, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_descriptor_changes() {
        let text = r#"{"x-vendor": {"n": 12345678901234567890}, "name":"find","annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}"#;
        let tool = shared_tool("search", text).unwrap();
        assert_eq!((tool.name.as_str(), tool.read_only), ("search__find", true));
        assert_eq!(tool.descriptor, text.replace("\"find\"", "\"search__find\""));
        assert_eq!(shared_tool("search", r#"{"title":"no name"}"#), None);
        assert_eq!(shared_tool("search", &tool.original_descriptor()), Some(tool));
    }

    #[test]
    fn a_server_without_tools_differs_from_one_that_fails_to_list_them() {
        let answer = |error: &str| format!(r#"{{"jsonrpc":"2.0","id":0,"error":{error}}}"#);
        assert_eq!(
            check_no_tools(&answer(r#"{"code":-32601,"message":"no such method"}"#)),
            Ok(())
        );
        let down = answer(r#"{"code":-32000,"message":"far.example cannot be reached"}"#);
        assert_eq!(check_no_tools(&down), Err("far.example cannot be reached".into()));
    }
}
