//! Starting a project's server, running it, ending it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::VERSION;
use crate::host::{Host, Parts};
use crate::native_tools::NativeTools;
use crate::registry::{LockAttempt, ServerEntry, ServerLock, ServerLockError};
use crate::runtime::{RuntimeDir, RuntimeError};
use crate::socket::Listener;
use crate::tools::Registry;
use crate::web::{HttpContext, HttpSettings, WebError};
use patterm_agents::activity;
use patterm_panes::data_plane::Event;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::{Cause, Process, ProcessId};
use patterm_project::project_file::ProjectFile;
use patterm_project::{declared, project_file};
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{StateDir, StateError};
use patterm_timers::Clock;
use patterm_wire::requests::HttpFlags;

/// What a server is started with.
#[derive(Debug)]
pub struct Settings {
    /// The project to serve.
    pub project: Project,
    /// Where its socket and locks go.
    pub runtime: RuntimeDir,
    /// Where its state goes.
    pub state: StateDir,
    /// Its tools.
    pub tools: Registry,
    /// Its ceilings.
    pub limits: Limits,
    /// The patterm binary, to start a keeper with, and agents' connections.
    pub program: PathBuf,
    /// The user's settings file, which need not be there.
    pub settings: Option<PathBuf>,
    /// Where its HTTP endpoint is to be, if a person asks for one.
    pub http: Option<HttpFlags>,
}

impl Settings {
    /// What the environment asks for.
    pub fn from_env(project: Project) -> Result<Self, StateError> {
        let state = StateDir::from_env(project.key())?;
        Ok(Self {
            runtime: RuntimeDir::from_env(),
            tools: Registry::standard(),
            limits: limits_of(&project, &state),
            state,
            program: std::env::current_exe().unwrap_or_else(|_| "patterm".into()),
            settings: settings_file("config.toml"),
            http: None,
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
    /// The project has one.
    #[error("a server (pid {}) already serves {}", .0.pid, .0.project.display())]
    Running(Box<ServerEntry>),
    /// It could not be decided who serves the project.
    #[error(transparent)]
    LockAttempt(#[from] ServerLockError),
    /// The socket could not be made.
    #[error(transparent)]
    Socket(#[from] RuntimeError),
    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The keeper lives, but does not answer: what runs would be lost without it.
    #[error("{0}; what it keeps can only be reached through it")]
    Keeper(std::io::Error),
    /// The HTTP endpoint could not be opened.
    #[error(transparent)]
    Web(#[from] WebError),
}

/// A server that listens. It serves once it is run.
#[derive(Debug)]
pub struct Server {
    host: Arc<Host>,
    tools: Arc<Registry>,
    listener: Listener,
    server_lock: ServerLock,
    events: mpsc::Receiver<Event>,
}

impl Server {
    /// Becomes the project's server, reads its state, and listens.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let Settings { project, runtime, state, tools, limits, program, settings, http } = settings;
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
            clock: Clock::system(),
        };
        let (host, events) = Host::load(parts)?;
        let host = Arc::new(host);
        host.declared
            .set_observer(Box::new(DeclaredObserver { host: Arc::downgrade(&host), settings }));
        if let Err(error) = reserve::establish(&state_dir) {
            tracing::error!(%error, "no room can be kept for state now");
        }
        host.web.open_as_asked(http)?;
        host.recover().map_err(StartError::Keeper)?;
        host.declared.read_project_file();
        host.declared.note_reconfigured();
        server_lock.publish(&entry(&host))?;
        Ok(Self { host, tools: Arc::new(tools), listener, server_lock, events })
    }

    /// The state it serves.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Where it is found.
    pub fn entry(&self) -> ServerEntry {
        entry(&self.host)
    }

    /// Ends the server when cancelled; cancelling twice is harmless.
    pub fn shutdown(&self) -> CancellationToken {
        self.host.shutdown.clone()
    }

    /// Serves until asked to end.
    pub async fn run(self) -> std::io::Result<()> {
        let Self { host, tools, listener, server_lock, events } = self;
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
        let declaring = tokio::spawn(declared::Driver::new(host.declared.clone()).run());
        let control = tokio::runtime::Handle::current();
        host.web.begin(HttpContext {
            own: Arc::new(NativeTools::new(Arc::downgrade(&host), tools.clone(), control)),
            shared: Arc::downgrade(&host.shared),
            runtime: host.shared.runtime().clone(),
            gateway: host.shared.gateway().clone(),
        });
        let reserve_keeper = host.panes.clone();
        let reserving = tokio::spawn(async move { reserve_keeper.keep_reserve().await });
        let announcing = tokio::spawn(announce(host.clone(), server_lock.clone()));
        let mut ending = None;
        let leaving = || {
            announcing.abort();
            host.web.end(!host.handover.load(Ordering::Acquire));
            server_lock.retire();
            // A server that ends on purpose takes everything in it along, unless another follows.
            if !host.handover.load(Ordering::Acquire) {
                // Shared servers and panes are ended through it.
                host.panes.keeper.resume();
                // Before anything ends: whatever happens from here on, the next server knows.
                host.lifecycle.note_interruption(Cause::Signal);
                // What ends with the server has not come to rest, is not started again, and gets its
                // messages from the next server.
                timing.abort();
                declaring.abort();
                delivering.abort();
                host.panes.begin_shutdown();
                ending = Some(tokio::spawn(host.ending.clone().end_panes()));
            }
        };
        let served = listener.run(host.clone(), tools, leaving).await;
        watching.abort();
        reserving.abort();
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
            host.ending.tell_ended(left);
        }
        let web = host.web.clone();
        let _ = tokio::task::spawn_blocking(move || web.finish_audit()).await;
        tracing::info!("ended");
        served
    }
}

/// What other parts learn of declared processes.
#[derive(Debug)]
struct DeclaredObserver {
    host: Weak<Host>,
    /// The user's settings.
    settings: Option<PathBuf>,
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
            host.shared.sweep_containers();
            host.web.configure(self.http_settings(&host));
            host.shared.configure();
        }
    }
}

impl DeclaredObserver {
    /// The HTTP endpoint as the project file declares it, else as the user's own settings do.
    fn http_settings(&self, host: &Host) -> HttpSettings {
        let own = host.declared.effect().and_then(|file| file.http.clone());
        let users = || ProjectFile::of_the_user(self.settings.as_deref()?).ok()?.http;
        let http = own.or_else(users);
        let mut settings: HttpSettings = http.as_ref().map(Into::into).unwrap_or_default();
        settings.bots = host.shared.bots_written();
        settings
    }
}

/// The limits that the project file sets, where it is trusted.
fn limits_of(project: &Project, state: &StateDir) -> Limits {
    let mut limits = Limits::default();
    for (name, number) in project_file::trusted(project.root(), state).unwrap_or_default().limits {
        if let Err(why) = limits.set(&name, number) {
            tracing::error!(why, "a limit of the project file is left as it is");
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

/// Says where the server is found whenever its HTTP endpoint moves.
async fn announce(host: Arc<Host>, server_lock: Arc<ServerLock>) {
    let mut address = host.web.address();
    while address.changed().await.is_ok() {
        if let Err(error) = server_lock.update(&entry(&host)) {
            tracing::error!(%error, "where the HTTP endpoint is cannot be told");
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
