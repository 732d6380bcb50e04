//! Shared MCP servers of the project file and the user's settings. The gateway runs them on its own
//! thread, so that a busy server does not delay typing.

mod build;
mod containers;
mod known;
mod server_recorder;
mod spawner;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use patterm_gateway::backend::container::Containers;
use patterm_gateway::http::BotServerStatus;
use patterm_gateway::{Caller, Catalogue, Gateway, ServerState, ServerStatus};
use patterm_wire::servers::ServerInfo;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use patterm_panes::Panes;
use patterm_project::declared::{Declared, FileStatus};
use patterm_project::project_file::{ProjectFile, ServerDefinition, ToolFilter};
use patterm_store::project::Project;
use patterm_store::state::StateDir;
use std::path::PathBuf;

use known::KnownServers;
use server_recorder::ServerRecorder;

/// The shared servers of a project.
pub(crate) struct Shared {
    parts: SharedParts,
    gateway: Gateway,
    catalogue: Catalogue,
    known: Arc<KnownServers>,
    runtime: Handle,
    /// Ends the thread when cancelled.
    end: CancellationToken,
    /// The configured servers.
    configured: Mutex<BTreeMap<String, ServerDefinition>>,
    /// The containers that patterm started, once there may be any.
    containers: OnceLock<Containers>,
    /// The servers in bots' containers, which run behind the HTTP endpoint.
    bot_sessions: BotServerStatus,
}

/// The parts of the server that shared servers use.
#[derive(Debug)]
pub(crate) struct SharedParts {
    /// Where servers on this machine run.
    pub(crate) panes: Arc<Panes>,
    /// The project file, which declares servers.
    pub(crate) declared: Arc<Declared>,
    pub(crate) project: Project,
    pub(crate) state: StateDir,
    /// The user's settings, which may declare servers too.
    pub(crate) settings: Option<PathBuf>,
    /// A private folder for pipes; it is created when needed.
    pub(crate) pipes: PathBuf,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("servers", &self.gateway.names()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Starts the thread. Servers start when they are first needed.
    pub(crate) fn start(parts: SharedParts) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let until = end.clone();
        let body = move || runtime.block_on(until.cancelled());
        std::thread::Builder::new().name("patterm-gateway".into()).spawn(body)?;
        let known = Arc::new(KnownServers::load(parts.state.file(known::FILE), handle.clone()));
        let recorder = ServerRecorder::new(parts.panes.events().clone());
        let gateway = Gateway::new(known.clone(), Arc::new(recorder));
        let catalogue = Catalogue::new(gateway.clone());
        let (configured, containers, bot_sessions) = Default::default();
        Ok(Self {
            parts,
            gateway,
            catalogue,
            known,
            runtime: handle,
            end,
            configured,
            containers,
            bot_sessions,
        })
    }

    /// The gateway; it runs on [`Self::runtime`].
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Whether no server is configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.configured().is_empty()
    }

    /// Which tools of a server each agent sees.
    pub(crate) fn filter(&self, server: &str) -> ToolFilter {
        self.configured().get(server).map(|server| server.tools.clone()).unwrap_or_default()
    }

    /// The name in a server's tool filter that a process could get if this name is requested: the name
    /// itself, or the name with the number that is appended if it is taken.
    pub(crate) fn filtered_name(&self, requested: &str) -> Option<String> {
        let configured = self.configured();
        let keys = || configured.values().flat_map(|server| server.tools.agents.keys());
        let is_numbered = |key: &&String| {
            let number = key.strip_prefix(requested).and_then(|rest| rest.strip_prefix('-'));
            number.is_some_and(|number| number.parse::<u64>().is_ok())
        };
        keys().find(|key| *key == requested).or_else(|| keys().find(is_numbered)).cloned()
    }

    /// Whether a server is running or being started.
    pub(crate) fn is_in_use(&self) -> bool {
        let is_up = |state| matches!(state, ServerState::Starting | ServerState::Running);
        self.gateway.status().iter().any(|(_, _, status)| is_up(status.state))
            || self.bot_sessions.status().iter().any(|session| is_up(session.status.state))
    }

    /// The status of all servers, including those whose settings cannot be used.
    pub(crate) fn status(&self) -> Vec<ServerInfo> {
        let mut all: Vec<_> = self
            .gateway
            .status()
            .into_iter()
            .map(|(name, owner, s)| self.info(name, owner, s))
            .collect();
        all.extend(self.bot_sessions.status().into_iter().map(|session| ServerInfo {
            place: "the container of a bot".into(),
            ..self.info(session.name, session.bot, session.status)
        }));
        all.sort_by(|a, b| (&a.name, &a.owner).cmp(&(&b.name, &b.owner)));
        all
    }

    fn info(&self, name: String, owner: String, status: ServerStatus) -> ServerInfo {
        let place = self.configured().get(&name).map(|server| server.location.to_string());
        ServerInfo {
            tools: self.catalogue.count(&name),
            owner: Some(owner).filter(|owner| !owner.is_empty()),
            state: status.state.as_str().to_owned(),
            place: place.unwrap_or_default(),
            pid: status.pid,
            uptime_seconds: status.uptime.map(|uptime| uptime.as_secs()),
            in_flight: status.in_flight,
            restarts: status.restarts,
            noise: status.noise,
            last_error: status.last_error.or_else(|| self.catalogue.error(&name)),
            name,
        }
    }

    /// Stops a server; the next call starts it again. `false` if there is no such server.
    pub(crate) fn restart(&self, name: &str) -> bool {
        let _runtime = self.runtime.enter();
        let exists = self.gateway.restart(name) || self.bot_sessions.restart(name);
        self.catalogue.forget(|server| server == name);
        self.ask_for_tools();
        exists
    }

    /// Asks new servers for their tools if a client listens for changes.
    fn ask_for_tools(&self) {
        if !self.catalogue.has_listeners() {
            return;
        }
        let catalogue = self.catalogue.clone();
        let caller = Caller { name: "patterm".into(), session: String::new() };
        self.runtime.spawn(async move { catalogue.tools(&caller, Duration::ZERO).await });
    }

    /// Stops all servers and the thread.
    pub(crate) async fn end(&self) {
        let gateway = self.gateway.clone();
        let _ = self.runtime.spawn(async move { gateway.end().await }).await;
        let known = self.known.clone();
        let _ = self.runtime.spawn_blocking(move || known.flush()).await;
        self.end.cancel();
    }

    fn configured(&self) -> MutexGuard<'_, BTreeMap<String, ServerDefinition>> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Shared {
    /// Applies the current project file and user's settings. Calls in flight to servers that were removed
    /// or changed can finish.
    pub(crate) fn configure(&self) {
        if self.declare() {
            self.ask_for_tools();
        }
    }

    /// Like [`Self::configure`], but starts no server; returns whether anything changed.
    pub(crate) fn declare(&self) -> bool {
        self.gateway.set_missing(match self.parts.declared.file_status() {
            FileStatus::Untrusted { .. } => Some(
                "patterm.toml is not trusted, so servers that it declares may be missing; a person can trust \
                 it with `patterm trust`"
                    .into(),
            ),
            FileStatus::Faulty { .. } => Some(
                "patterm.toml has errors, so servers that it declares may be missing; `patterm doctor` lists \
                 them"
                    .into(),
            ),
            FileStatus::Absent | FileStatus::Trusted { .. } => None,
        });
        let mut servers = self.user_servers();
        if let Some(file) = self.parts.declared.effect() {
            servers.extend(file.servers.clone());
        }
        if *self.configured() == servers {
            return false;
        }
        let spec = |(name, server): (&String, _)| (name.clone(), build::spec(self, name, server));
        let specs = servers.iter().map(spec).collect();
        let before = std::mem::replace(&mut *self.configured(), servers);
        let _runtime = self.runtime.enter();
        self.gateway.configure(specs);
        let now = self.configured().clone();
        self.catalogue.forget(|server| before.get(server) != now.get(server));
        true
    }

    /// The servers in the user's settings; errors in them are logged.
    fn user_servers(&self) -> BTreeMap<String, ServerDefinition> {
        let Some(path) = &self.parts.settings else { return BTreeMap::new() };
        match ProjectFile::of_the_user(path) {
            Ok(file) => file.servers,
            Err(faults) => {
                for fault in faults {
                    tracing::error!(
                        fault,
                        "shared servers in the user's settings are ignored: the file has errors"
                    );
                }
                BTreeMap::new()
            }
        }
    }
}
