//! Starting, running and shutting down a project's server.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::VERSION;
use crate::git_recorder::GitRecorder;
use crate::host::{Host, Parts};
use crate::native_tools::NativeTools;
use crate::port_recorder::PortRecorder;
use crate::registry::{LockAttempt, ServerEntry, ServerLock, ServerLockError};
use crate::runtime::{RuntimeDir, RuntimeError};
use crate::socket::Listener;
use crate::tools::Registry;
use crate::unused::end_when_unused;
use crate::web::{HttpContext, HttpSettings, WebError};
use patterm_agents::activity;
use patterm_events::{About, EventError, EventLog, acting};
use patterm_panes::data_plane::Event;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::{Cause, Process, ProcessId};
use patterm_project::project_file::ProjectFile;
use patterm_project::{declared, project_file};
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{StateDir, StateError};
use patterm_store::sync::lock;
use patterm_wire::events::{Actor, Fact};
use patterm_wire::requests::HttpFlags;

/// The folder of the log of events, in the state folder.
pub(crate) const EVENTS: &str = "events";

/// The file with the user's own settings, for [`settings_file`].
pub const USERS_SETTINGS: &str = "config.toml";

/// The limit that the user's settings may set for all projects.
const UNUSED_LIMIT: &str = "unused_seconds";

/// The configuration of a server.
#[derive(Debug)]
pub struct Settings {
    /// The project to serve.
    pub project: Project,
    /// The folder of its socket and locks.
    pub runtime: RuntimeDir,
    /// The folder of its state.
    pub state: StateDir,
    /// Its tools.
    pub tools: Registry,
    /// Its limits.
    pub limits: Limits,
    /// The patterm binary, to start keepers and the agents' stdio proxies.
    pub program: PathBuf,
    /// The user's settings file, which need not exist.
    pub settings: Option<PathBuf>,
    /// The requested address of its HTTP endpoint, if a person asks for one.
    pub http: Option<HttpFlags>,
    /// Whether it shuts down once nothing uses it.
    pub ends_unused: bool,
}

impl Settings {
    /// The configuration according to the environment.
    pub fn from_env(project: Project) -> Result<Self, StateError> {
        let state = StateDir::from_env(project.key())?;
        let settings = settings_file(USERS_SETTINGS);
        Ok(Self {
            runtime: RuntimeDir::from_env(),
            tools: Registry::standard(),
            limits: limits_of(&project, &state, settings.as_deref()),
            state,
            program: std::env::current_exe().unwrap_or_else(|_| "patterm".into()),
            settings,
            http: None,
            ends_unused: false,
            project,
        })
    }

    /// The server's log.
    pub fn log_file(&self) -> PathBuf {
        self.state.file("server.log")
    }
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The project already has a server.
    #[error("a server (pid {}) already serves {}", .0.pid, .0.project.display())]
    Running(Box<ServerEntry>),
    /// The lock could not be taken.
    #[error(transparent)]
    LockAttempt(#[from] ServerLockError),
    /// The socket could not be created.
    #[error(transparent)]
    Socket(#[from] RuntimeError),
    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The keeper is running but does not answer: without it the running programs would be lost.
    #[error("{0}; its programs can only be reached through it")]
    Keeper(std::io::Error),
    /// The log of events could not be opened.
    #[error(transparent)]
    Events(#[from] EventError),
    /// The HTTP endpoint could not be opened.
    #[error(transparent)]
    Web(#[from] WebError),
}

/// A server that listens. It handles requests once `run` is called.
#[derive(Debug)]
pub struct Server {
    host: Arc<Host>,
    tools: Arc<Registry>,
    listener: Listener,
    server_lock: ServerLock,
    events: mpsc::Receiver<Event>,
    ends_unused: bool,
}

impl Server {
    /// Becomes the project's server, loads its state, and listens.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let ends_unused = settings.ends_unused;
        let Settings { project, runtime, state, tools, limits, program, settings, http, .. } =
            settings;
        let mut server_lock = match ServerLock::claim(&project, &runtime, &state)? {
            LockAttempt::Ours(server_lock) => server_lock,
            LockAttempt::Running(entry) => return Err(StartError::Running(Box::new(entry))),
        };
        let listener = Listener::bind(&runtime)?;
        let socket = listener.path().to_owned();
        let keeper_socket = runtime.file(project.key(), "keeper");
        let keeper = KeeperClient::new(keeper_socket, program.clone(), project.root());
        let pipes = runtime.file(project.key(), "containers");
        let report = runtime.file(project.key(), "ended");
        let state_dir = state.path().to_owned();
        let clock = Clock::system();
        state.ensure()?;
        let events = EventLog::open(&state.file(EVENTS), limits.event_bytes, clock.clone())?;
        record_start(&events);
        let parts = Parts {
            project,
            socket,
            state,
            pipes,
            report,
            tools: tools.names().map(str::to_owned).collect(),
            limits,
            keeper,
            settings: settings.clone(),
            program,
            clock,
            events,
        };
        let (host, events) = Host::load(parts)?;
        let host = Arc::new(host);
        host.declared.set_observer(Box::new(DeclaredObserver::new(&host, settings)));
        if let Err(error) = reserve::establish(&state_dir) {
            tracing::error!(%error, "cannot create the disk reserve");
        }
        host.web.open_with_flags(http)?;
        host.recover().map_err(StartError::Keeper)?;
        host.declared.read_project_file();
        host.declared.note_reconfigured();
        server_lock.publish(&entry(&host))?;
        Ok(Self { host, tools: Arc::new(tools), listener, server_lock, events, ends_unused })
    }

    /// The parts of the server.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The entry under which clients find it.
    pub fn entry(&self) -> ServerEntry {
        entry(&self.host)
    }

    /// Cancelling this shuts the server down; cancelling twice is harmless.
    pub fn shutdown(&self) -> CancellationToken {
        self.host.shutdown.clone()
    }

    /// Serves until it is asked to shut down.
    pub async fn run(self) -> std::io::Result<()> {
        let Self { host, tools, listener, server_lock, events, ends_unused } = self;
        let server_lock = Arc::new(server_lock);
        tracing::info!(project = %host.project.root().display(), socket = %host.socket.display(),
            version = VERSION, "serving");
        let follower = host.clone();
        let following = tokio::spawn(async move {
            let ended = |id: &ProcessId, run| {
                follower.agents.note_run_over(id, run);
                follower.timers.notify();
                follower.declared.notify();
            };
            follower.panes.follow(events, ended).await;
        });
        let agents = host.agents.clone();
        let observing = tokio::spawn(async move { agents.observe().await });
        let delivering = tokio::spawn(host.agents.deliverer.clone().run());
        let keeper = host.panes.keeper.clone();
        let watching = tokio::spawn(async move { keeper.watch().await });
        let timing = tokio::spawn(patterm_timers::Driver::new(host.timers.clone())?.run());
        let declaring = declared::Driver::new(host.declared.clone()).run();
        let declaring = tokio::spawn(acting(Actor::ProjectFile, declaring));
        let hooking = tokio::spawn(host.hooks.clone().run());
        let control = tokio::runtime::Handle::current();
        host.web.begin(HttpContext {
            own: Arc::new(NativeTools::new(Arc::downgrade(&host), tools.clone(), control)),
            shared: Arc::downgrade(&host.shared),
            runtime: host.shared.runtime().clone(),
            gateway: host.shared.gateway().clone(),
        });
        let committing = tokio::spawn(GitRecorder::new(host.panes.clone()).run());
        let noting_ports = tokio::spawn(PortRecorder::new(host.panes.clone()).run());
        let reserve_keeper = host.panes.clone();
        let reserving = tokio::spawn(async move { reserve_keeper.keep_reserve().await });
        let announcing = tokio::spawn(announce(host.clone(), server_lock.clone()));
        let unused_after = host.limits.unused_seconds.filter(|_| ends_unused);
        let unused = unused_after.map(|seconds| {
            tokio::spawn(end_when_unused(host.clone(), Duration::from_secs(seconds)))
        });
        let mut ending = None;
        let leaving = || {
            announcing.abort();
            if let Some(unused) = &unused {
                unused.abort();
            }
            host.web.end(!host.handover.load(Ordering::Acquire));
            server_lock.retire();
            // A deliberate shutdown ends everything that runs, unless another server takes over.
            if !host.handover.load(Ordering::Acquire) {
                // Shared servers and panes are ended through the keeper.
                host.panes.keeper.resume();
                // Before anything ends, so that the next server knows what was running, whatever happens.
                host.lifecycle.note_interruption(Cause::Signal);
                // Processes that end with the server have not become idle, are
                // not restarted, and get their messages from the next server.
                timing.abort();
                declaring.abort();
                delivering.abort();
                // The next server passes on what happens from now on.
                hooking.abort();
                host.panes.begin_shutdown();
                ending = Some(tokio::spawn(host.ending.clone().end_panes()));
            }
        };
        let served = listener.run(host.clone(), tools, leaving).await;
        watching.abort();
        reserving.abort();
        committing.abort();
        noting_ports.abort();
        hooking.abort();
        delivering.abort();
        if host.handover.load(Ordering::Acquire) {
            host.agents.deliverer.finish().await;
        }
        host.shared.end().await;
        observing.abort();
        timing.abort();
        declaring.abort();
        if let Some(ending) = ending {
            let _ = ending.await;
            let left = host.panes.keeper.end().await;
            following.abort();
            host.panes.note_shutdown();
            host.ending.report_ended(left);
        }
        let web = host.web.clone();
        let hooks = host.hooks.clone();
        let _ = tokio::task::spawn_blocking(move || web.finish_audit()).await;
        let _ = tokio::task::spawn_blocking(move || hooks.save()).await;
        host.events.close();
        tracing::info!("ended");
        served
    }
}

/// Records that a server begins, and whether its version is another one.
fn record_start(events: &EventLog) {
    let version = VERSION.to_owned();
    let before = events.known_state().version;
    events.record(About::project(), Fact::SystemStarted { version: version.clone() });
    if before.as_ref().is_some_and(|before| *before != version) {
        events.record(About::project(), Fact::SystemUpgraded { version, before });
    }
}

/// Informs other parts about declared processes.
#[derive(Debug)]
struct DeclaredObserver {
    host: Weak<Host>,
    /// The user's settings.
    settings: Option<PathBuf>,
    /// The hash of the project file that was recorded last, if there was one.
    project_file: Mutex<Option<String>>,
}

impl declared::Observer for DeclaredObserver {
    fn added(&self, process: &Process) {
        if let Some(host) = self.host.upgrade() {
            host.agents.activities.set(&process.id, activity::ended(process), true);
        }
    }

    fn not_wanted(&self) {
        if let Some(host) = self.host.upgrade() {
            host.timers.notify();
        }
    }

    fn reconfigured(&self) {
        if let Some(host) = self.host.upgrade() {
            self.record_project_file(&host);
            host.shared.sweep_containers();
            host.web.configure(self.http_settings(&host));
            host.shared.configure();
            host.hooks.configure();
        }
    }
}

impl DeclaredObserver {
    fn new(host: &Arc<Host>, settings: Option<PathBuf>) -> Self {
        let project_file = Mutex::new(host.events.known_state().project_file);
        Self { host: Arc::downgrade(host), settings, project_file }
    }

    /// Records that the content of the project file has changed.
    fn record_project_file(&self, host: &Host) {
        let hash = host.declared.file_status().hash().map(str::to_owned);
        let mut known = lock(&self.project_file);
        if *known != hash {
            known.clone_from(&hash);
            let fact = Fact::ProjectFileChanged { hash };
            host.events.record_by(Actor::System, About::project(), fact);
        }
    }

    /// The HTTP settings of the project file, or else of the user's own settings.
    fn http_settings(&self, host: &Host) -> HttpSettings {
        let own = host.declared.effect().and_then(|file| file.http.clone());
        let users = || ProjectFile::of_the_user(self.settings.as_deref()?).ok()?.http;
        let http = own.or_else(users);
        let mut settings: HttpSettings = http.as_ref().map(Into::into).unwrap_or_default();
        settings.bots = host.shared.bots_definition();
        settings
    }
}

/// The limits of the project file, if it is trusted. The user's own settings say when an unused
/// server shuts down, unless the project file does.
fn limits_of(project: &Project, state: &StateDir, settings: Option<&Path>) -> Limits {
    let mut limits = Limits::default();
    let users = settings.and_then(|file| ProjectFile::of_the_user(file).ok()).unwrap_or_default();
    let unused = users.limits.into_iter().filter(|(name, _)| name == UNUSED_LIMIT);
    let trusted = project_file::trusted(project.root(), state).unwrap_or_default();
    for (name, number) in unused.chain(trusted.limits) {
        if let Err(why) = limits.set(&name, number) {
            tracing::error!(why, "a limit in the project file is ignored");
        }
    }
    limits
}

/// A file of the user's own settings: `$XDG_CONFIG_HOME/patterm/NAME`.
#[must_use]
pub fn settings_file(name: &str) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    home.map(|home| home.join("patterm").join(name))
}

/// Updates the server's entry whenever the address of its HTTP endpoint changes.
async fn announce(host: Arc<Host>, server_lock: Arc<ServerLock>) {
    let mut address = host.web.address();
    while address.changed().await.is_ok() {
        if let Err(error) = server_lock.update(&entry(&host)) {
            tracing::error!(%error, "cannot publish the address of the HTTP endpoint");
        }
    }
}

fn entry(host: &Host) -> ServerEntry {
    ServerEntry {
        pid: std::process::id(),
        socket: host.socket.clone(),
        project: host.project.root().to_owned(),
        key: host.project.key().to_owned(),
        patterm: VERSION.to_owned(),
        started_at: host.started_at,
        http: *host.web.address().borrow(),
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::events::EventQuery;

    use super::*;

    #[test]
    fn a_server_of_another_version_is_an_upgrade() {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(folder.path(), 8 << 20, Clock::system()).unwrap();
        record_start(&log);
        log.record(About::project(), Fact::SystemStarted { version: "0.0.1".into() });
        record_start(&log);
        let query = EventQuery { since: Some(1), ..EventQuery::default() };
        let events = log.read(&query).unwrap().events;
        let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
        let begins = "system.started";
        assert_eq!(kinds, [begins, begins, begins, "system.upgraded"]);
        assert_eq!(events[3].data["before"], "0.0.1");
    }
}
