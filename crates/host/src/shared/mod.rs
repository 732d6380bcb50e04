//! Shared MCP servers: what the project file and the user's settings name, run by the gateway on a
//! thread of its own, so that a busy server delays nobody's keys.

mod door;
mod known;
mod made;
mod spawner;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use patterm_gateway::backend::container::Containers;
use patterm_gateway::http::BotSessions;
use patterm_gateway::{Caller, Catalogue, Gateway, ServerStatus};
use patterm_wire::servers::ServerInfo;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::project_file::{ServerDefinition, ToolFilter};
use patterm_store::state::StateDir;

pub(crate) use door::Door;
use known::KnownServers;

/// The shared servers of a project.
pub(crate) struct Shared {
    gateway: Gateway,
    catalogue: Catalogue,
    known: Arc<KnownServers>,
    runtime: Handle,
    /// Ends the thread.
    end: CancellationToken,
    named: Mutex<Named>,
    /// Containers of ours, once there may be any.
    containers: OnceLock<Containers>,
    /// The servers in bots' containers, which run behind the HTTP door.
    bot_sessions: BotSessions,
}

/// What is named.
#[derive(Debug, Default)]
struct Named {
    servers: BTreeMap<String, ServerDefinition>,
    /// Servers that cannot be run as they are written, and why.
    faults: BTreeMap<String, String>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("servers", &self.gateway.names()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Starts the thread; no server runs before one is needed.
    pub(crate) fn start(state: &StateDir) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let until = end.clone();
        let body = move || runtime.block_on(until.cancelled());
        std::thread::Builder::new().name("patterm-gateway".into()).spawn(body)?;
        let known = Arc::new(KnownServers::load(state.file(known::FILE), handle.clone()));
        let gateway = Gateway::remembering(known.clone());
        let catalogue = Catalogue::new(gateway.clone());
        let (named, containers, bot_sessions) = Default::default();
        Ok(Self {
            gateway,
            catalogue,
            known,
            runtime: handle,
            end,
            named,
            containers,
            bot_sessions,
        })
    }

    /// The gateway itself; what it does, it does on this runtime.
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.named().servers.is_empty()
    }

    /// Which tools of a server are shown, to whom.
    pub(crate) fn filter(&self, server: &str) -> ToolFilter {
        self.named().servers.get(server).map(|server| server.tools.clone()).unwrap_or_default()
    }

    /// The name by which a server shows its tools that a process could have once it is given this
    /// one: the same, or that with a number behind it, which it gets where the name is taken.
    pub(crate) fn filtered_name(&self, given: &str) -> Option<String> {
        let named = self.named();
        let keys = || named.servers.values().flat_map(|server| server.tools.agents.keys());
        let is_numbered = |key: &&String| {
            let number = key.strip_prefix(given).and_then(|rest| rest.strip_prefix('-'));
            number.is_some_and(|number| number.parse::<u64>().is_ok())
        };
        keys().find(|key| *key == given).or_else(|| keys().find(is_numbered)).cloned()
    }

    /// How they stand, those that cannot be run among them.
    pub(crate) fn status(&self) -> Vec<ServerInfo> {
        let mut all: Vec<_> = self
            .gateway
            .status()
            .into_iter()
            .map(|(name, owner, s)| self.seen(name, owner, s))
            .collect();
        all.extend(self.bot_sessions.status().into_iter().map(|session| ServerInfo {
            place: "the container of a bot".into(),
            ..self.seen(session.name, session.bot, session.status)
        }));
        // Not in the loop's own line, where the lock would be held through all of it.
        let faults = self.named().faults.clone();
        for (name, fault) in faults {
            let mut status = ServerStatus::asleep();
            status.state = "failed";
            status.last_error = Some(fault);
            all.push(self.seen(name, String::new(), status));
        }
        all.sort_by(|a, b| (&a.name, &a.owner).cmp(&(&b.name, &b.owner)));
        all
    }

    fn seen(&self, name: String, owner: String, status: ServerStatus) -> ServerInfo {
        let place = self.named().servers.get(&name).map(|server| server.place.to_string());
        ServerInfo {
            tools: self.catalogue.count(&name),
            owner: Some(owner).filter(|owner| !owner.is_empty()),
            state: status.state.to_owned(),
            place: place.unwrap_or_default(),
            pid: status.pid,
            uptime_seconds: status.uptime.map(|uptime| uptime.as_secs()),
            in_flight: status.in_flight,
            restarts: status.restarts,
            noise: status.noise,
            last_error: status.last_error.or_else(|| self.catalogue.fault(&name)),
            name,
        }
    }

    /// Has a server end, to be started anew by the next call; `false` where there is none.
    pub(crate) fn restart(&self, name: &str) -> bool {
        let _runtime = self.runtime.enter();
        let there = self.gateway.restart(name) || self.bot_sessions.restart(name);
        self.catalogue.forget(|server| server == name);
        self.ask_for_tools();
        there
    }

    /// Asks servers that are new for their tools, if somebody is there who would be told.
    fn ask_for_tools(&self) {
        if !self.catalogue.has_listeners() {
            return;
        }
        let catalogue = self.catalogue.clone();
        let nobody = Caller { caller: "patterm".into(), session: String::new() };
        self.runtime.spawn(async move { catalogue.tools(&nobody, Duration::ZERO).await });
    }

    /// Ends all of them, and the thread.
    pub(crate) async fn end(&self) {
        let gateway = self.gateway.clone();
        let _ = self.runtime.spawn(async move { gateway.end().await }).await;
        let known = self.known.clone();
        let _ = self.runtime.spawn_blocking(move || known.flush()).await;
        self.end.cancel();
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Host {
    /// Makes the shared servers those that the project file and the user's settings name now. Calls
    /// in flight to those that are gone or changed finish.
    pub(crate) fn configure_shared(self: &Arc<Self>) {
        self.sweep_containers();
        self.configure_http();
        let mut servers = self.servers_of_the_user();
        if let Some(file) = self.declared.effect() {
            servers.extend(file.servers.clone());
        }
        let shared = &self.shared;
        if shared.named().servers == servers {
            return;
        }
        let (mut wanted, mut faults) = (BTreeMap::new(), BTreeMap::new());
        for (name, server) in &servers {
            match made::wanted(self, name, server) {
                Ok(made) => drop(wanted.insert(name.clone(), made)),
                Err(fault) => {
                    tracing::error!(server = name, fault, "a shared server cannot be run");
                    faults.insert(name.clone(), fault);
                }
            }
        }
        let before = std::mem::replace(&mut *shared.named(), Named { servers, faults });
        let _runtime = shared.runtime.enter();
        shared.gateway.configure(wanted);
        let now = shared.named().servers.clone();
        shared.catalogue.forget(|server| before.servers.get(server) != now.get(server));
        shared.ask_for_tools();
    }
}
