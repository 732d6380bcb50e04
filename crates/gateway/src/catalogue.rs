//! The tools of all shared servers, as agents see them: descriptors as the servers wrote them, under
//! names of ours. They are fetched once and again when a server says that they changed.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::{Id, reply};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::gateway::{Caller, Gateway, Line};
use crate::{Told, names, raw};

/// Pages of one server's list: more is a list without an end.
const PAGES: usize = 100;

/// A server that could not say its tools is asked again after this, and after twice as long each
/// time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The longest list that is kept for a server's later lives: forty tools are 40 kB.
const KEPT_BYTES: usize = 1 << 20;

/// A tool of a shared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedTool {
    /// Its name as callers use it.
    pub name: String,
    /// The server it belongs to.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// It says of itself that it changes nothing.
    pub read_only: bool,
    /// Its descriptor under our name.
    pub descriptor: String,
}

impl SharedTool {
    /// Its descriptor under the name that its server knows it by.
    fn as_its_own(&self) -> String {
        match raw::at_path(&self.descriptor, &["name"]) {
            Some(span) => raw::edited(&self.descriptor, vec![(span, raw::quoted(&self.tool))]),
            None => self.descriptor.clone(),
        }
    }
}

/// What is known of all servers' tools.
#[derive(Clone)]
pub struct Catalogue(Arc<Inner>);

/// A server's list.
#[derive(Debug, Clone)]
struct Listed {
    tools: Arc<Vec<SharedTool>>,
    /// The server said so itself, in this life of patterm's server; otherwise it is what it last said
    /// in an earlier one.
    is_fresh: bool,
}

struct Inner {
    gateway: Gateway,
    known: Mutex<BTreeMap<String, Listed>>,
    fetching: Mutex<HashSet<String>>,
    /// Why servers could not say their tools.
    faults: Mutex<BTreeMap<String, String>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl Catalogue {
    /// An empty one.
    pub fn new(gateway: Gateway) -> Self {
        let inner = Inner {
            gateway,
            known: Mutex::default(),
            fetching: Mutex::default(),
            faults: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        Self(Arc::new(inner))
    }

    /// Told whenever a list changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Forgets what is known of servers that are not there any more, or are others now.
    pub fn forget(&self, of: impl Fn(&str) -> bool) {
        self.known().retain(|server, _| !of(server));
        self.faults().retain(|server, _| !of(server));
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether anybody would be told of a change.
    pub fn has_listeners(&self) -> bool {
        self.0.changes.receiver_count() > 0
    }

    /// All tools that are known, in the order of their names. Servers that were not asked in this life
    /// are asked now, and waited for, for so long, unless their list is known from an earlier one. Who
    /// answers later, and otherwise, is told of as a change.
    pub async fn tools(&self, caller: &Caller, patience: Duration) -> Vec<SharedTool> {
        let mut asked = JoinSet::new();
        self.recall();
        for server in self.0.gateway.names() {
            if !self.is_fresh(&server) && self.fetching().insert(server.clone()) {
                asked.spawn(self.clone().follow(server, caller.clone()));
            }
        }
        // Others may be asking already.
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
        let _ = timeout(patience, complete).await;
        asked.detach_all();
        self.known_tools()
    }

    /// All tools that are known now, in the order of their names; nobody is asked.
    pub fn known_tools(&self) -> Vec<SharedTool> {
        self.recall();
        let names = self.0.gateway.names();
        let known = self.known();
        known
            .iter()
            .filter(|(server, _)| names.contains(server))
            .flat_map(|(_, listed)| listed.tools.iter().cloned())
            .collect()
    }

    /// How many tools a server has, once it was asked.
    pub fn count(&self, server: &str) -> Option<usize> {
        self.known().get(server).map(|listed| listed.tools.len())
    }

    /// Why a server could not say its tools when it was last asked.
    pub fn fault(&self, server: &str) -> Option<String> {
        self.faults().get(server).cloned()
    }

    /// A tool by its name, if its server was ever asked for its tools.
    pub fn find(&self, name: &str) -> Option<SharedTool> {
        self.recall();
        let known = self.known();
        let mut tools = known.values().flat_map(|listed| listed.tools.iter());
        tools.find(|tool| tool.name == name).cloned()
    }

    /// Takes the lists of an earlier life for servers whose own are not known.
    fn recall(&self) {
        for server in self.0.gateway.names() {
            if self.known().contains_key(&server) {
                continue;
            }
            let known = self.0.gateway.recall(&server).and_then(|known| known.tools);
            if let Some(descriptors) = known {
                let tools = descriptors.iter().filter_map(|text| shared(&server, text)).collect();
                let listed = Listed { tools: Arc::new(tools), is_fresh: false };
                self.known().entry(server).or_insert(listed);
            }
        }
    }

    fn is_fresh(&self, server: &str) -> bool {
        self.known().get(server).is_some_and(|listed| listed.is_fresh)
    }

    /// Asks a server for its tools, and again each time it says that they changed.
    async fn follow(self, server: String, caller: Caller) {
        let line = self.0.gateway.line(&server, &caller);
        let (line, mut told) = match line {
            Ok(line) => line,
            Err(refusal) => return self.fetched(&server, Err(refusal.message)),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let tools = fetch(&server, &line).await;
            let failed = tools.is_err();
            self.fetched(&server, tools);
            if failed {
                // Whoever asked has gone on without them; it is told once they are there.
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                let others = self.is_fresh(&server) || !self.fetching().insert(server.clone());
                if others || !self.0.gateway.names().contains(&server) {
                    return;
                }
            } else if !changed(&mut told).await {
                return;
            }
        }
    }

    fn fetched(&self, server: &str, tools: Result<Vec<SharedTool>, String>) {
        self.fetching().remove(server);
        match tools {
            Ok(tools) => {
                self.faults().remove(server);
                let descriptors: Vec<_> = tools.iter().map(SharedTool::as_its_own).collect();
                let bytes: usize = descriptors.iter().map(String::len).sum();
                self.0.gateway.remember(server, |known| {
                    known.tools = (bytes <= KEPT_BYTES).then(|| descriptors.clone());
                });
                let listed = Listed { tools: Arc::new(tools), is_fresh: true };
                self.known().insert(server.to_owned(), listed);
            }
            Err(why) => {
                tracing::warn!(server, why, "a shared server's tools are not known");
                self.faults().insert(server.to_owned(), why);
            }
        }
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Listed>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetching(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a server says that its tools changed; `false` when its session is over.
async fn changed(told: &mut mpsc::Receiver<Told>) -> bool {
    while let Some(told) = told.recv().await {
        if raw::member(&told.text, "method") == Some("\"notifications/tools/list_changed\"") {
            return true;
        }
    }
    false
}

/// All pages of a server's list, or why it has none to give now.
async fn fetch(server: &str, line: &Line) -> Result<Vec<SharedTool>, String> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for page in 0..PAGES {
        let id = Id::from_number(u64::try_from(page).unwrap_or_default());
        let params = cursor.map_or("{}".into(), |cursor| format!("{{\"cursor\":{cursor}}}"));
        let text = reply::request(&id, "tools/list", Some(&params));
        let text = String::from_utf8_lossy(&text).into_owned();
        let answer = line.ask(&id, "tools/list", text).await;
        let answer = answer.map_err(|refusal| refusal.message)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some(result) = raw::member(&answer, "result") else {
            return without_tools(&answer).map(|()| tools);
        };
        let list = raw::member(result, "tools").unwrap_or("null");
        let list: Vec<&RawValue> = serde_json::from_str(list)
            .map_err(|e| format!("its answer to tools/list has no list of tools: {e}"))?;
        tools.extend(list.iter().filter_map(|tool| shared(server, tool.get())));
        match raw::member(result, "nextCursor").filter(|next| *next != "null") {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(tools),
        }
    }
    Ok(tools)
}

/// Whether an error says that a server has no tools at all, or what else it says.
fn without_tools(answer: &str) -> Result<(), String> {
    let part = |name| raw::at_path(answer, &["error", name]).map(|span| &answer[span]);
    if part("code").and_then(|code| code.parse().ok()) == Some(METHOD_NOT_FOUND) {
        return Ok(());
    }
    let said = part("message").and_then(|message| serde_json::from_str(message).ok());
    Err(said.unwrap_or_else(|| "it answered tools/list with an error".into()))
}

fn shared(server: &str, descriptor: &str) -> Option<SharedTool> {
    let span = raw::at_path(descriptor, &["name"])?;
    let tool: String = serde_json::from_str(&descriptor[span.clone()]).ok()?;
    let name = names::of_tool(server, &tool);
    let read_only = raw::at_path(descriptor, &["annotations", "readOnlyHint"]);
    let read_only = read_only.is_some_and(|span| &descriptor[span] == "true");
    let descriptor = raw::edited(descriptor, vec![(span, raw::quoted(&name))]);
    Some(SharedTool { name, server: server.to_owned(), tool, read_only, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_stay_but_for_their_name() {
        let text = r#"{"x-vendor": {"n": 12345678901234567890}, "name":"find","annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}"#;
        let tool = shared("search", text).unwrap();
        assert_eq!((tool.name.as_str(), tool.read_only), ("search__find", true));
        assert_eq!(tool.descriptor, text.replace("\"find\"", "\"search__find\""));
        assert_eq!(shared("search", r#"{"title":"no name"}"#), None);
        assert_eq!(shared("search", &tool.as_its_own()), Some(tool));
    }

    #[test]
    fn a_server_without_tools_is_told_from_one_that_cannot_say_them() {
        let answer = |error: &str| format!(r#"{{"jsonrpc":"2.0","id":0,"error":{error}}}"#);
        assert_eq!(without_tools(&answer(r#"{"code":-32601,"message":"no such method"}"#)), Ok(()));
        let down = answer(r#"{"code":-32000,"message":"far.example cannot be reached"}"#);
        assert_eq!(without_tools(&down), Err("far.example cannot be reached".into()));
    }
}
