//! The parts of a server, wired together: what tools and connections act on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use patterm_agents::identity::Identities;
use patterm_agents::{AgentParts, Agents};
use patterm_pads::SharedPads;
use patterm_panes::Panes;
use patterm_panes::data_plane::Event;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::ProcessId;
use patterm_project::declared::Declared;
use patterm_store::clock::now_ms;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::{self, StateDir, StateError};
use patterm_timers::{Clock, Timers};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::lifecycle::Lifecycle;
use crate::process_activity::ProcessActivity;
use crate::selections::Selections;
use crate::shared::{Shared, SharedParts};
use crate::shutdown::Shutdown;
use crate::timer_texts::TimerTexts;
use crate::web::Web;

/// A project's state, by its parts.
#[derive(Debug)]
pub struct Host {
    /// The project served.
    pub project: Project,
    /// Where this server listens.
    pub socket: PathBuf,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// Its processes.
    pub panes: Arc<Panes>,
    /// Its agents.
    pub agents: Arc<Agents>,
    /// Who its agents are.
    pub identities: Arc<Identities>,
    /// What its project file declares.
    pub declared: Arc<Declared>,
    /// Its scratchpads.
    pub pads: SharedPads,
    /// What will wake its agents.
    pub timers: Arc<Timers>,
    /// How much of everything there may be.
    pub limits: Limits,
    /// What is seen of its processes' activity.
    pub(crate) activity: Arc<ProcessActivity>,
    /// Starts and ends its processes.
    pub(crate) lifecycle: Lifecycle,
    /// Cancelled when the server is to end.
    pub(crate) shutdown: CancellationToken,
    /// The next server takes over what runs.
    pub(crate) handover: AtomicBool,
    /// How it is to end.
    pub(crate) ending: Arc<Shutdown>,
    /// The patterm binary.
    pub(crate) program: PathBuf,
    /// Its HTTP endpoint.
    pub(crate) web: Arc<Web>,
    /// MCP servers that all agents use.
    pub(crate) shared: Arc<Shared>,
    /// Calls that ask views to show a process.
    pub(crate) selections: Selections,
    /// The process that a view last began to show; changed when a view ends, as well.
    pub(crate) looks: watch::Sender<Option<ProcessId>>,
}

/// What a host is made from.
pub(crate) struct Parts {
    pub(crate) project: Project,
    pub(crate) socket: PathBuf,
    pub(crate) state: StateDir,
    /// A folder of its own for pipes; it need not be there.
    pub(crate) pipes: PathBuf,
    /// Where it reports its end.
    pub(crate) report: PathBuf,
    /// The names of all tools.
    pub(crate) tools: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) keeper: KeeperClient,
    /// The user's settings.
    pub(crate) settings: Option<PathBuf>,
    pub(crate) program: PathBuf,
    pub(crate) clock: Clock,
}

impl Host {
    /// Reads the project's state; returns what the data plane will report.
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
        } = parts;
        let (panes, events) = Panes::load(&project, &state, &limits, keeper, &clock.boot())?;
        let panes = Arc::new(panes);
        let declared =
            Arc::new(Declared::new(panes.clone(), &project, &state, settings.as_deref()));
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
        let timers = Arc::new(Timers::load(&state, activity.clone(), texts, clock)?);
        let shared = Shared::start(SharedParts {
            panes: panes.clone(),
            declared: declared.clone(),
            project: project.clone(),
            state: state.clone(),
            settings: settings.clone(),
            pipes,
        })
        .map_err(state::failed("start threads for", project.root()))?;
        let ending = Shutdown::new(report, panes.clone(), agents.clone(), &limits, settings);
        let host = Self {
            identities: agents.identities.clone(),
            pads: SharedPads::load(&state, &limits)?,
            web: Arc::new(Web::load(&state)?),
            shared: Arc::new(shared),
            ending: Arc::new(ending),
            lifecycle: Lifecycle {
                panes: panes.clone(),
                agents: agents.clone(),
                declared: declared.clone(),
                timers: timers.clone(),
            },
            started_at: now_ms() / 1000,
            shutdown: CancellationToken::new(),
            handover: AtomicBool::new(false),
            selections: Selections::default(),
            looks: watch::Sender::new(None),
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

    /// Takes over the panes that an earlier server left with the keeper.
    pub(crate) fn recover(&self) -> std::io::Result<()> {
        // Only agents are issued an identity.
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
