//! The shared servers, for the client of one connection: their tools are listed beside
//! patterm's own, and descriptors, calls and results pass unchanged.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use patterm_gateway::http::CallOutcome;
use patterm_gateway::{Caller as Who, ClientHandle, GatewayError, Notification, SharedTool, raw};
use patterm_wire::error::{INVALID_PARAMS, METHOD_NOT_FOUND};
use patterm_wire::{ErrorObject, Id, Incoming, reply};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::caller::Caller;
use crate::host::Host;
use crate::tools::Registry;
use patterm_panes::process::Process;

/// How long a list of tools waits for servers whose tools are not known from an earlier run;
/// the client is notified about the tools of slower ones later. One second longer than the
/// probe, so that a server that ignores it can still be initialized.
const LIST_PATIENCE: Duration =
    patterm_gateway::PROBE_TIMEOUT.saturating_add(Duration::from_secs(1));

/// Separates a server's name from its tool's.
const SEPARATOR: &str = "__";

/// Numbers the connections.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// The shared servers, for one connection.
pub(crate) struct SharedToolsClient {
    host: Arc<Host>,
    /// patterm's own tools.
    tools: Arc<Registry>,
    caller: Caller,
    who: Who,
    handles: Mutex<HashMap<String, Arc<ClientHandle>>>,
    notices: mpsc::Sender<Vec<u8>>,
    /// A hash of the last list that the client got.
    listed: Mutex<Option<u64>>,
    /// Whether the client has initialized, and accepts unsolicited notifications.
    greeted: AtomicBool,
    /// Checks whether the client's list changed, for as long as this connection exists.
    watch: OnceLock<Owned<()>>,
    /// Counts changes of the client's list.
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for SharedToolsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedToolsClient").field("who", &self.who).finish_non_exhaustive()
    }
}

/// A task that is aborted when its owner is dropped.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SharedToolsClient {
    pub(crate) fn new(
        host: Arc<Host>,
        tools: Arc<Registry>,
        caller: Caller,
        notices: mpsc::Sender<Vec<u8>>,
    ) -> Arc<Self> {
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let name = caller.process().map_or_else(|| "external".into(), ToString::to_string);
        Arc::new(Self {
            who: Who { name, session: format!("connection {number}") },
            handles: Mutex::default(),
            listed: Mutex::default(),
            greeted: AtomicBool::new(false),
            watch: OnceLock::new(),
            changes: watch::Sender::new(0),
            host,
            tools,
            caller,
            notices,
        })
    }

    /// The client has initialized.
    pub(crate) fn note_greeting(&self) {
        self.greeted.store(true, Ordering::Relaxed);
    }

    /// Changes whenever the client's list of tools changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds the tools of shared servers to a list of patterm's own.
    pub(crate) async fn complete(self: &Arc<Self>, list: String) -> String {
        // A client that never asked for a list needs no notifications about it.
        self.watch.get_or_init(|| {
            let changes = self.host.shared.catalogue().changes();
            Owned(tokio::spawn(watch_lists(Arc::downgrade(self), changes)))
        });
        if !self.is_open() {
            *self.listed() = Some(hash(&[]));
            return list;
        }
        let (catalogue, who) = (self.host.shared.catalogue().clone(), self.who.clone());
        let asked = async move { catalogue.tools(&who, LIST_PATIENCE).await };
        let mut task = Owned(self.host.shared.runtime().spawn(asked));
        let tools = self.shown((&mut task.0).await.unwrap_or_default());
        *self.listed() = Some(hash(&tools));
        let Some(span) = raw::at_path(&list, &["tools"]) else { return list };
        let mut more = String::new();
        let empty = list[span.clone()].trim_start_matches('[').trim_start().starts_with(']');
        for (n, tool) in tools.iter().enumerate() {
            if n > 0 || !empty {
                more.push(',');
            }
            more.push_str(&tool.descriptor);
        }
        // Insert before the closing bracket.
        raw::edited(&list, vec![(span.end - 1..span.end - 1, more)])
    }

    /// Whether a tool with this name could belong to a shared server.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        name.contains(SEPARATOR) && !self.tools.has(name) && self.is_open()
    }

    /// HTTP clients have a separate endpoint for each server instead.
    fn is_open(&self) -> bool {
        !matches!(self.caller, Caller::Token(_)) && !self.host.shared.is_empty()
    }

    /// Calls a shared server's tool; returns the body of the response, with the caller's id.
    pub(crate) async fn call(self: Arc<Self>, id: Id, name: String, params: String) -> Vec<u8> {
        let tool = match self.find(&name).await {
            Ok(tool) => tool,
            Err(error) => return reply::error(Some(&id), &error),
        };
        let handle = match self.handle(&tool.server) {
            Ok(handle) => handle,
            Err(refusal) => return refusal.to_response(&id),
        };
        let params = match raw::at_path(&params, &["name"]) {
            Some(span) => raw::edited(&params, vec![(span, raw::quoted(&tool.tool))]),
            None => params,
        };
        let text = reply::request(&id, "tools/call", Some(&params));
        let text = String::from_utf8_lossy(&text).into_owned();
        let audit = self.host.web.audit_call(&self.who.name, &tool.server, &tool.tool, &params);
        let asked = {
            let id = id.clone();
            async move { handle.request(&id, "tools/call", text).await }
        };
        let mut task = Owned(self.host.shared.runtime().spawn(asked));
        match (&mut task.0).await {
            Ok(Ok(answer)) => {
                audit.answered(CallOutcome::of(&answer), answer.len());
                answer
            }
            Ok(Err(refusal)) => {
                audit.answered(CallOutcome::of_error(&refusal), 0);
                refusal.to_response(&id)
            }
            Err(_) => {
                let message = format!(
                    "internal error in patterm while serving {name}; other calls are not affected"
                );
                reply::error(
                    Some(&id),
                    &ErrorObject::new(patterm_wire::error::INTERNAL_ERROR, message),
                )
            }
        }
    }

    async fn find(&self, name: &str) -> Result<SharedTool, ErrorObject> {
        let catalogue = self.host.shared.catalogue().clone();
        let mut found = catalogue.find(name);
        if found.is_none() {
            // Its server may never have been asked, or was down.
            let (asked, who) = (catalogue.clone(), self.who.clone());
            let asked = async move { drop(asked.tools(&who, LIST_PATIENCE).await) };
            let mut task = Owned(self.host.shared.runtime().spawn(asked));
            let _ = (&mut task.0).await;
            found = catalogue.find(name);
        }
        found.and_then(|tool| self.shown(vec![tool]).pop()).ok_or_else(|| {
            let servers = self.host.shared.gateway().names();
            let mut message = format!(
                "unknown tool `{name}`; the shared servers are {}, and tools/list lists their tools",
                servers.join(", ")
            );
            for (server, fault) in servers.iter().filter_map(|s| Some((s, catalogue.error(s)?))) {
                message.push_str(&format!("; `{server}` could not list its tools: {fault}"));
            }
            ErrorObject::new(INVALID_PARAMS, message)
        })
    }

    /// The tools that this caller may see.
    fn shown(&self, tools: Vec<SharedTool>) -> Vec<SharedTool> {
        let names = |process: &Process| -> Vec<String> {
            let preset = process.agent.as_ref().map(|agent| agent.preset.clone());
            std::iter::once(process.name.clone()).chain(preset).collect()
        };
        let processes = &self.host.panes.processes;
        let process = self.caller.process().and_then(|id| processes.get(id));
        let line = std::iter::successors(process, |process| processes.agent_above(process));
        let line: Vec<Vec<String>> = line.map(|process| names(&process)).collect();
        let shown = |tool: &SharedTool| {
            let filter = self.host.shared.filter(&tool.server);
            match line.split_first() {
                Some((agent, above)) => filter.shows_to(&tool.tool, agent, above),
                None => filter.all.shows(&tool.tool),
            }
        };
        tools.into_iter().filter(shown).collect()
    }

    /// This connection's handle of a server.
    fn handle(&self, server: &str) -> Result<Arc<ClientHandle>, GatewayError> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(server) {
            return Ok(handle.clone());
        }
        let (handle, notifications) = self.host.shared.gateway().connect(server, &self.who)?;
        let handle = Arc::new(handle);
        handles.insert(server.to_owned(), handle.clone());
        let forward = forward(notifications, Arc::downgrade(&handle), self.notices.clone());
        self.host.shared.runtime().spawn(forward);
        Ok(handle)
    }

    /// Notifies the client if its list of tools has changed.
    fn check_list(&self) {
        let mut listed = self.listed();
        let Some(before) = *listed else { return };
        let now = hash(&self.shown(self.host.shared.catalogue().known_tools()));
        if now == before {
            return;
        }
        *listed = Some(now);
        drop(listed);
        self.changes.send_modify(|changes| *changes += 1);
        if self.greeted.load(Ordering::Relaxed) {
            let notice = reply::notification("notifications/tools/list_changed", None);
            // If the client does not read, the notice is dropped.
            let _ = self.notices.try_send(notice);
        }
    }

    fn listed(&self) -> MutexGuard<'_, Option<u64>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedToolsClient {
    fn drop(&mut self) {
        let _runtime = self.host.shared.runtime().enter();
        self.host.shared.gateway().end_session(&self.who);
    }
}

fn hash(tools: &[SharedTool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        tool.descriptor.hash(&mut hasher);
    }
    hasher.finish()
}

/// Checks the list at every change, until the connection ends.
async fn watch_lists(shared_tools: Weak<SharedToolsClient>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(shared_tools) = shared_tools.upgrade() else { return };
        shared_tools.check_list();
    }
}

/// Forwards a server's notifications about calls. Changes of its lists are reported elsewhere,
/// and its requests are refused.
async fn forward(
    mut notifications: mpsc::Receiver<Notification>,
    handle: Weak<ClientHandle>,
    notices: mpsc::Sender<Vec<u8>>,
) {
    while let Some(notification) = notifications.recv().await {
        let method = raw::member(&notification.text, "method").unwrap_or_default();
        if let Some(id) = raw::member(&notification.text, "id").and_then(Id::from_json) {
            let message = format!("{method} is not supported on an agent's connection");
            let refusal = reply::error(Some(&id), &ErrorObject::new(METHOD_NOT_FOUND, message));
            if let Some(handle) = handle.upgrade()
                && let Ok(Incoming::One(message)) = Incoming::parse(&refusal)
            {
                handle.notify(&message, &String::from_utf8_lossy(&refusal));
            }
            continue;
        }
        if !method.contains("list_changed")
            && notices.send(notification.text.into_bytes()).await.is_err()
        {
            return;
        }
    }
}
