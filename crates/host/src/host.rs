//! What a server knows of its project: the one owner of state that tools act on.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use patterm_keeper::Pane;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::activity::{self, Activities};
use crate::declared::Declared;
use crate::delivery::Deliveries;
use crate::identity::Identities;
use crate::keeping::Keeping;
use crate::pads::SharedPads;
use crate::plane::{Event, Live, Plane, Trouble};
use crate::process::{ProcessId, Processes};
use crate::selections::Selections;
use crate::shared::Shared;
use crate::shutdown::Shutdown;
use crate::timers::{Clock, Timers};
use crate::tools::Registry;
use crate::web::Web;
use patterm_store::clock::now_ms;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::reserve;
use patterm_store::state::{StateDir, StateError};

/// A project's state and everything that can be done with it.
#[derive(Debug)]
pub struct Host {
    /// The project served.
    pub project: Project,
    /// Where this server listens.
    pub socket: PathBuf,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// Its processes.
    pub processes: Processes,
    /// Who its agents are.
    pub identities: Identities,
    /// Its scratchpads.
    pub pads: SharedPads,
    /// What callers can do.
    pub tools: Registry,
    /// How much of it.
    pub limits: Limits,
    /// Cancelled when the server is to end.
    pub(crate) shutdown: CancellationToken,
    /// What runs is to be left to the next server.
    pub(crate) handover: AtomicBool,
    pub(crate) state: StateDir,
    /// How it is to end.
    pub(crate) ending: Shutdown,
    /// A folder of its own for pipes; it need not be there.
    pub(crate) pipes: PathBuf,
    /// The user's settings.
    pub(crate) settings: Option<PathBuf>,
    /// The patterm binary.
    pub(crate) program: PathBuf,
    pub(crate) keeping: Keeping,
    pub(crate) plane: Plane,
    /// Whether its processes work.
    pub(crate) activities: Activities,
    /// What is on its way into them.
    pub(crate) deliveries: Deliveries,
    /// What will wake them.
    pub(crate) timers: Timers,
    /// What its project file declares.
    pub(crate) declared: Declared,
    /// Its door for HTTP clients.
    pub(crate) web: Web,
    /// MCP servers that all agents use.
    pub(crate) shared: Shared,
    /// What every program finds in its environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// Calls that ask views to show a process.
    pub(crate) selections: Selections,
    /// The process that somebody last began to look at; rung when one ends to, as well.
    pub(crate) looks: watch::Sender<Option<ProcessId>>,
    /// Some room on the disk is kept for state.
    reserved: AtomicBool,
    /// When the first pane of agents began of which something may run on outside of any pane, in
    /// milliseconds since 1970.
    pub(crate) left_behind: AtomicU64,
    lives: RwLock<HashMap<ProcessId, Arc<Live>>>,
    /// Lives that nobody observes yet.
    newborn: Mutex<Vec<Arc<Live>>>,
    born: Notify,
}

/// What a host is made from.
pub(crate) struct Parts {
    pub(crate) project: Project,
    pub(crate) socket: PathBuf,
    pub(crate) state: StateDir,
    pub(crate) pipes: PathBuf,
    pub(crate) ending: Shutdown,
    pub(crate) tools: Registry,
    pub(crate) limits: Limits,
    pub(crate) keeping: Keeping,
    pub(crate) settings: Option<PathBuf>,
    pub(crate) program: PathBuf,
}

impl Host {
    /// Reads the project's state; returns what the data plane will tell of.
    pub(crate) fn load(parts: Parts) -> Result<(Self, mpsc::Receiver<Event>), StateError> {
        let Parts {
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
        } = parts;
        let (plane, events) = Plane::start(limits.history_bytes)
            .map_err(patterm_store::state::failed("start threads for", project.root()))?;
        let clock = Clock::system();
        let processes = Processes::load(&state, &clock.boot())?;
        let deliveries = Deliveries::load(&state)?;
        let host = Self {
            timers: Timers::load(&state, &processes, &deliveries, clock)?,
            declared: Declared::new(&project, &state),
            shared: Shared::start(&state)
                .map_err(patterm_store::state::failed("start threads for", project.root()))?,
            processes,
            identities: Identities::load(&state)?,
            web: Web::load(&state)?,
            activities: Activities::default(),
            deliveries,
            pads: SharedPads::load(&state, &limits)?,
            started_at: now_ms() / 1000,
            shutdown: CancellationToken::new(),
            handover: AtomicBool::new(false),
            environment: crate::environment::of_this_process(),
            selections: Selections::default(),
            looks: watch::Sender::new(None),
            reserved: AtomicBool::new(true),
            left_behind: AtomicU64::new(u64::MAX),
            lives: RwLock::default(),
            newborn: Mutex::default(),
            born: Notify::new(),
            settings,
            program,
            project,
            socket,
            state,
            pipes,
            ending,
            tools,
            limits,
            keeping,
            plane,
        };
        Ok((host, events))
    }

    /// The present or last life of a process.
    pub(crate) fn live(&self, id: &ProcessId) -> Option<Arc<Live>> {
        self.lives.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// All of them, by the names of their panes.
    pub(crate) fn lives(&self) -> Vec<(String, Arc<Live>)> {
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        lives.values().map(|live| (pane_name(&live.id, live.run), live.clone())).collect()
    }

    /// Those whose init is one of these processes.
    pub(crate) fn panes_with_inits(&self, pids: &[i32]) -> Vec<ProcessId> {
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        let is_among = |live: &&Arc<Live>| live.init().is_some_and(|init| pids.contains(&init));
        lives.values().filter(is_among).map(|live| live.id.clone()).collect()
    }

    /// Those of which something may run on outside of any pane.
    pub(crate) fn panes_left_behind(&self) -> Vec<ProcessId> {
        let keeper = self.keeping.live_pid();
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        let left = lives.values().filter(|live| live.is_left_behind(keeper));
        left.map(|live| live.id.clone()).collect()
    }

    pub(crate) fn set_live(&self, live: Arc<Live>) -> Option<Arc<Live>> {
        self.plane.count(&live);
        self.newborn.lock().unwrap_or_else(PoisonError::into_inner).push(live.clone());
        self.born.notify_one();
        self.look_for_left_behind();
        let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
        lives.insert(live.id.clone(), live)
    }

    pub(crate) fn take_live(&self, id: &ProcessId) -> Option<Arc<Live>> {
        self.look_for_left_behind();
        self.lives.write().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Whether anybody follows the project now, with patterm's screen open.
    pub(crate) fn is_watched(&self) -> bool {
        self.selections.has_followers()
    }

    /// Observes every life from its beginning to its end.
    pub(crate) async fn observe_lives(self: Arc<Self>) {
        loop {
            let newborn =
                std::mem::take(&mut *self.newborn.lock().unwrap_or_else(PoisonError::into_inner));
            for live in newborn {
                tokio::spawn(activity::observe(self.clone(), live));
            }
            self.born.notified().await;
        }
    }

    /// Keeps some room on the disk for state.
    pub(crate) async fn keep_reserve(&self) {
        let told = |whole| {
            if self.reserved.swap(whole, Ordering::AcqRel) != whole {
                self.processes.ring();
            }
        };
        reserve::keep(self.state.path(), told).await;
    }

    /// What is wrong with the disk, where somebody should know.
    pub(crate) fn disk_problem(&self) -> Option<String> {
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        let full = lives.values().any(|live| live.trouble() == Some(Trouble::DiskFull));
        let folder = self.state.path().display();
        (full || !self.reserved.load(Ordering::Acquire)).then(|| {
            format!(
                "the disk of {folder} is full: the newest output takes the place of the oldest, and \
                 what is new beside it (processes, timers, messages, scratchpads) is refused; make room"
            )
        })
    }

    /// What the versions of a process's next screen begin above.
    pub(crate) fn version_base(&self, id: &ProcessId) -> u64 {
        let before = self.live(id).map_or(0, |live| live.screen().version() + 1);
        self.processes.version_base().max(before)
    }

    /// Takes over the panes that an earlier server left with the keeper.
    pub(crate) fn recover(&self) -> std::io::Result<()> {
        let mut panes: HashMap<String, Arc<Pane>> = self.keeping.recover()?.into_iter().collect();
        self.adopt_unknown(&panes);
        for process in self.processes.all() {
            let pane = panes.remove(&process.pane());
            self.recover_process(&process, pane);
        }
        if self.keeping.is_kept() {
            self.note_takeover();
        }
        for (name, pane) in panes {
            tracing::warn!(name, "a pane of an earlier run or of a shared server is ended");
            drop(pane);
            self.keeping.forget_now(&name);
        }
        Ok(())
    }
}

/// The name of a life's pane at the keeper.
pub(crate) fn pane_name(id: &ProcessId, run: u64) -> String {
    format!("{id}.{run}")
}
