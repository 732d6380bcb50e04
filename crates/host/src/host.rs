//! The parts of a server, wired together, for tools and connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use patterm_agents::identity::Identities;
use patterm_agents::{AgentParts, Agents};
use patterm_events::EventLog;
use patterm_hooks::{HookParts, Hooks};
use patterm_pads::SharedPads;
use patterm_panes::Panes;
use patterm_panes::data_plane::Event;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::ProcessId;
use patterm_project::declared::{Declared, DeclaredPolicy};
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::{self, StateDir, StateError};
use patterm_timers::Timers;
use patterm_wire::error::ServerEnd;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::lifecycle::Lifecycle;
use crate::process_activity::ProcessActivity;
use crate::selections::Selections;
use crate::shared::{Shared, SharedParts};
use crate::shutdown::Shutdown;
use crate::timer_texts::TimerTexts;
use crate::viewers::Viewers;
use crate::web::Web;

/// The parts of a project's server.
#[derive(Debug)]
pub struct Host {
    /// The project that it serves.
    pub project: Project,
    /// The path of its socket.
    pub socket: PathBuf,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// Its processes.
    pub panes: Arc<Panes>,
    /// Its agents.
    pub agents: Arc<Agents>,
    /// The identities of its agents.
    pub identities: Arc<Identities>,
    /// The processes that its project file declares.
    pub declared: Arc<Declared>,
    /// Its scratchpads.
    pub pads: SharedPads,
    /// Its timers.
    pub timers: Arc<Timers>,
    /// Its limits.
    pub limits: Limits,
    /// What happened in it.
    pub events: EventLog,
    /// What is run when something happens.
    pub(crate) hooks: Arc<Hooks>,
    /// The activity of its processes.
    pub(crate) activity: Arc<ProcessActivity>,
    /// Starts and ends its processes.
    pub(crate) lifecycle: Lifecycle,
    /// Cancelled when the server should shut down.
    pub(crate) shutdown: CancellationToken,
    /// Whether the next server takes over everything that runs.
    pub(crate) handover: AtomicBool,
    /// Performs its shutdown.
    pub(crate) ending: Arc<Shutdown>,
    /// The patterm binary.
    pub(crate) program: PathBuf,
    /// Its HTTP endpoint.
    pub(crate) web: Arc<Web>,
    /// Its shared MCP servers.
    pub(crate) shared: Arc<Shared>,
    /// Requests to views to show a process.
    pub(crate) selections: Selections,
    /// How far people have looked.
    pub(crate) viewers: Viewers,
    /// The number of its clients.
    pub(crate) clients: watch::Sender<usize>,
    /// The process that a view last began to show; also changes when a view ends.
    pub(crate) last_viewed: watch::Sender<Option<ProcessId>>,
}

/// The arguments of [`Host::load`].
pub(crate) struct Parts {
    pub(crate) project: Project,
    pub(crate) socket: PathBuf,
    pub(crate) state: StateDir,
    /// A folder for its pipes; it need not exist.
    pub(crate) pipes: PathBuf,
    /// The file for the report of its shutdown.
    pub(crate) report: PathBuf,
    /// The names of all tools.
    pub(crate) tools: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) keeper: KeeperClient,
    /// The user's settings.
    pub(crate) settings: Option<PathBuf>,
    pub(crate) program: PathBuf,
    pub(crate) clock: Clock,
    /// Where events are recorded.
    pub(crate) events: EventLog,
}

impl Host {
    /// Loads the project's state; returns the events of the data plane, too.
    pub(crate) fn load(parts: Parts) -> Result<(Self, mpsc::Receiver<Event>), StateError> {
        let Parts {
            project,
            socket,
            state,
            pipes,
            report,
            tools,
            limits,
            keeper,
            settings,
            program,
            clock,
            events: event_log,
        } = parts;
        let (panes, events) = Panes::load(&project, &state, &limits, keeper, clock.clone())?;
        let panes = Arc::new(panes.with_events(event_log.clone()));
        let declared =
            Arc::new(Declared::new(panes.clone(), &project, &state, settings.as_deref()));
        panes.environments.set_policy(Box::new(DeclaredPolicy::of(&declared)));
        let agents = Arc::new(Agents::load(AgentParts {
            panes: panes.clone(),
            declared: declared.clone(),
            project: project.clone(),
            state: state.clone(),
            limits: limits.clone(),
            settings: settings.clone(),
            program: program.clone(),
            socket: socket.clone(),
            tools,
        })?);
        let activity = Arc::new(ProcessActivity {
            panes: panes.clone(),
            agents: agents.clone(),
            declared: declared.clone(),
        });
        let texts = Arc::new(TimerTexts(agents.deliveries.clone()));
        let timers = Timers::load(&state, activity.clone(), texts, clock.clone())?;
        let timers = Arc::new(timers.with_events(event_log.clone()));
        let shared = Shared::start(SharedParts {
            panes: panes.clone(),
            declared: declared.clone(),
            project: project.clone(),
            state: state.clone(),
            settings: settings.clone(),
            pipes,
        })
        .map_err(state::failed("start threads for", project.root()))?;
        let hooks = Hooks::load(HookParts {
            panes: panes.clone(),
            declared: declared.clone(),
            project: project.clone(),
            state: state.clone(),
            settings: settings.clone(),
            events: event_log.clone(),
            clock: clock.clone(),
        })?;
        let ending = Shutdown::new(
            report,
            panes.clone(),
            agents.clone(),
            declared.clone(),
            &limits,
            settings,
        );
        let host = Self {
            identities: agents.identities.clone(),
            pads: SharedPads::load_recorded(&state, &limits, clock.clone(), event_log.clone())?,
            web: Arc::new(Web::load(&state, clock.clone())?),
            shared: Arc::new(shared),
            hooks: Arc::new(hooks),
            ending: Arc::new(ending),
            lifecycle: Lifecycle {
                panes: panes.clone(),
                agents: agents.clone(),
                declared: declared.clone(),
                timers: timers.clone(),
            },
            started_at: clock.wall_ms() / 1000,
            events: event_log,
            shutdown: CancellationToken::new(),
            handover: AtomicBool::new(false),
            selections: Selections::default(),
            viewers: Viewers::load(&state)?,
            clients: watch::Sender::new(0),
            last_viewed: watch::Sender::new(None),
            project,
            socket,
            panes,
            agents,
            declared,
            timers,
            limits,
            activity,
            program,
        };
        Ok((host, events))
    }

    /// Why the server is going away, if it is.
    pub(crate) fn end(&self) -> Option<ServerEnd> {
        let replaced = self.handover.load(Ordering::Acquire);
        let end = if replaced { ServerEnd::Replaced } else { ServerEnd::Ended };
        self.shutdown.is_cancelled().then_some(end)
    }

    /// Takes over the panes that an earlier server left with the keeper.
    pub(crate) fn recover(&self) -> std::io::Result<()> {
        // Only agents have an identity.
        let recovered = self.panes.recover(|id| self.identities.has(id))?;
        for process in &recovered.ended {
            self.agents.note_ended(process);
        }
        if recovered.is_kept {
            self.declared.note_takeover();
        }
        Ok(())
    }
}
