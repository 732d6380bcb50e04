//! Starting a project's server, running it, ending it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::VERSION;
use crate::declared;
use crate::host::{Host, Parts};
use crate::keeping::Keeping;
use crate::plane::Event;
use crate::process::Cause;
use crate::project_file;
use crate::registry::{Claim, ClaimError, Seat, ServerEntry};
use crate::runtime::{RuntimeDir, RuntimeError};
use crate::shutdown::Shutdown;
use crate::socket::Listener;
use crate::timers;
use crate::tools::Registry;
use crate::web::{Hall, WebError};
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{StateDir, StateError};
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
    /// Where its HTTP door is to be, if a person asks for one.
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
    Claim(#[from] ClaimError),
    /// The socket could not be made.
    #[error(transparent)]
    Socket(#[from] RuntimeError),
    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The keeper lives, but does not answer: what runs would be lost without it.
    #[error("{0}; what it keeps can only be reached through it")]
    Keeper(std::io::Error),
    /// The HTTP door could not be opened.
    #[error(transparent)]
    Web(#[from] WebError),
}

/// A server that listens. It serves once it is run.
#[derive(Debug)]
pub struct Server {
    host: Arc<Host>,
    listener: Listener,
    seat: Seat,
    events: mpsc::Receiver<Event>,
}

impl Server {
    /// Becomes the project's server, reads its state, and listens.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let Settings { project, runtime, state, tools, limits, program, settings, http } = settings;
        let mut seat = match Seat::claim(&project, &runtime, &state)? {
            Claim::Ours(seat) => seat,
            Claim::Running(entry) => return Err(StartError::Running(Box::new(entry))),
        };
        let listener = Listener::bind(&runtime)?;
        let socket = listener.path().to_owned();
        let keeper_socket = runtime.file(project.key(), "keeper");
        let keeping = Keeping::new(keeper_socket, program.clone(), project.root());
        let pipes = runtime.file(project.key(), "containers");
        let ending = Shutdown::new(runtime.file(project.key(), "ended"));
        let parts = Parts {
            project,
            socket,
            state,
            pipes,
            ending,
            tools,
            limits,
            keeping,
            settings,
            program,
        };
        let (host, events) = Host::load(parts)?;
        if let Err(error) = reserve::establish(host.state.path()) {
            tracing::error!(%error, "no room can be kept for state now");
        }
        host.web.open_as_asked(http)?;
        host.recover().map_err(StartError::Keeper)?;
        host.read_project_file();
        let host = Arc::new(host);
        host.configure_shared();
        seat.publish(&entry(&host))?;
        Ok(Self { host, listener, seat, events })
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
        let Self { host, listener, seat, events } = self;
        let seat = Arc::new(seat);
        tracing::info!(project = %host.project.root().display(), socket = %host.socket.display(),
            version = VERSION, "serving");
        let follower = host.clone();
        let following = tokio::spawn(async move { follower.follow(events).await });
        let observing = tokio::spawn(host.clone().observe_lives());
        let delivering = tokio::spawn(host.clone().deliver_all());
        let keeping = host.keeping.clone();
        let watching = tokio::spawn(async move { keeping.watch().await });
        let timing = tokio::spawn(timers::Driver::new(host.clone())?.run());
        let declaring = tokio::spawn(declared::Driver::new(host.clone()).run());
        host.web.begin(Hall {
            host: Arc::downgrade(&host),
            control: tokio::runtime::Handle::current(),
            runtime: host.shared.runtime().clone(),
            gateway: host.shared.gateway().clone(),
        });
        let reserve_keeper = host.clone();
        let reserving = tokio::spawn(async move { reserve_keeper.keep_reserve().await });
        let announcing = tokio::spawn(announce(host.clone(), seat.clone()));
        let mut ending = None;
        let leaving = || {
            announcing.abort();
            host.web.end(!host.handover.load(Ordering::Acquire));
            seat.retire();
            // A server that ends on purpose takes everything in it along, unless another follows.
            if !host.handover.load(Ordering::Acquire) {
                // Shared servers and panes are ended through it.
                host.keeping.resume();
                // Before anything ends: whatever happens from here on, the next server knows.
                host.note_interruption(Cause::Signal);
                // What ends with the server has not come to rest, is not started again, and gets its
                // messages from the next server.
                timing.abort();
                declaring.abort();
                delivering.abort();
                host.begin_shutdown();
                ending = Some(tokio::spawn(host.clone().end_panes()));
            }
        };
        let served = listener.run(host.clone(), leaving).await;
        watching.abort();
        reserving.abort();
        delivering.abort();
        if host.handover.load(Ordering::Acquire) {
            host.finish_deliveries().await;
        }
        host.shared.end().await;
        observing.abort();
        timing.abort();
        declaring.abort();
        if let Some(ending) = ending {
            let _ = ending.await;
            let left = host.keeping.end().await;
            following.abort();
            host.note_shutdown();
            host.tell_ended(left);
        }
        let web = host.clone();
        let _ = tokio::task::spawn_blocking(move || web.web.finish_audit()).await;
        tracing::info!("ended");
        served
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

/// Says where the server is found whenever its HTTP door moves.
async fn announce(host: Arc<Host>, seat: Arc<Seat>) {
    let mut address = host.web.address();
    while address.changed().await.is_ok() {
        if let Err(error) = seat.update(&entry(&host)) {
            tracing::error!(%error, "where the HTTP door is cannot be told");
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
