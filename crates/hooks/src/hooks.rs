//! All hooks of a project: which ones are in effect, their tasks, and how a person looks at them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use patterm_events::EventLog;
use patterm_panes::Panes;
use patterm_project::declared::{Declared, FileStatus};
use patterm_project::project_file::{HookDefinition, ProjectFile};
use patterm_store::clock::Clock;
use patterm_store::project::Project;
use patterm_store::state::{StateDir, StateError};
use patterm_store::sync::lock;
use patterm_wire::events::{Actor, EventQuery, EventRecord, Fact, format_time};
use patterm_wire::hooks::{HookFile, HookInfo, HookOutcome};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::action::{ServerContext, perform, project_name};
use crate::hook::{ActiveHook, HookId};
use crate::post::Poster;
use crate::progress::{HookProgress, ProgressTable};
use crate::worker::{HookServices, Worker};

/// There is no hook of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no hook `{name}`{}", listed(.known))]
pub struct UnknownHook {
    /// The name.
    pub name: String,
    /// The names of all hooks.
    pub known: Vec<String>,
}

fn listed(known: &[String]) -> String {
    match known.is_empty() {
        true => "; neither config.toml nor a trusted patterm.toml has any".into(),
        false => format!("; there are {}", known.join(", ")),
    }
}

/// The arguments of [`Hooks::load`].
#[derive(Debug)]
pub struct HookParts {
    /// Runs commands.
    pub panes: Arc<Panes>,
    /// Knows the project file.
    pub declared: Arc<Declared>,
    /// The project.
    pub project: Project,
    /// Where the progress of hooks is stored.
    pub state: StateDir,
    /// The user's settings.
    pub settings: Option<PathBuf>,
    /// The log of events.
    pub events: EventLog,
    /// The clock of the log.
    pub clock: Clock,
}

/// The hooks of a project.
#[derive(Debug)]
pub struct Hooks {
    services: Arc<HookServices>,
    declared: Arc<Declared>,
    settings: Option<PathBuf>,
    /// Those in effect, with those of the settings first.
    hooks: Mutex<Vec<Arc<ActiveHook>>>,
    /// Notified when they change.
    changed: Notify,
    /// Held while the files are read.
    reading: Mutex<()>,
}

impl Hooks {
    /// Reads what hooks have done so far. None is in effect yet.
    pub fn load(parts: HookParts) -> Result<Self, StateError> {
        let HookParts { panes, declared, project, state, settings, events, clock } = parts;
        let services = HookServices {
            events,
            clock,
            progress: Arc::new(ProgressTable::load(&state)?),
            context: Box::new(ServerContext { panes, poster: Poster::default() }),
            project: project_name(project.root()),
        };
        let (services, changed) = (Arc::new(services), Notify::new());
        let (hooks, reading) = (Mutex::default(), Mutex::default());
        Ok(Self { services, declared, settings, hooks, changed, reading })
    }

    /// Puts into effect what the files say. A file with errors changes nothing.
    pub fn configure(&self) {
        let _reading = lock(&self.reading);
        let users = match &self.settings {
            Some(path) => ProjectFile::of_the_user(path).map(|file| file.hooks),
            None => Ok(Vec::new()),
        };
        let users = users.inspect_err(|faults| {
            tracing::error!(?faults, "the hooks in the user's settings stay as they were");
        });
        let is_project_known =
            matches!(self.declared.file_status(), FileStatus::Trusted { .. } | FileStatus::Absent);
        let projects = self.declared.effect().map(|file| file.hooks.clone()).unwrap_or_default();
        let before = lock(&self.hooks).clone();
        let of = |file: HookFile, definitions: Vec<HookDefinition>| {
            let hook = move |definition| Arc::new(ActiveHook { file: file.clone(), definition });
            definitions.into_iter().map(hook)
        };
        let are_users_known = users.is_ok();
        let mut now: Vec<_> = match users {
            Ok(definitions) => of(HookFile::Settings, definitions).collect(),
            Err(_) => {
                before.iter().filter(|hook| hook.file == HookFile::Settings).cloned().collect()
            }
        };
        now.extend(of(HookFile::Project, projects));
        self.note_configured(&now, are_users_known, is_project_known);
        if before != now {
            *lock(&self.hooks) = now;
            self.changed.notify_one();
        }
    }

    /// New hooks begin at the next event; those that no file has any more are forgotten.
    fn note_configured(&self, hooks: &[Arc<ActiveHook>], users_known: bool, project_known: bool) {
        let progress = &self.services.progress;
        let next = *self.services.events.last().borrow() + 1;
        hooks.iter().for_each(|hook| progress.add(hook, next));
        progress.retain(|id| {
            let is_known = match id.file {
                HookFile::Settings => users_known,
                _ => project_known,
            };
            !is_known || hooks.iter().any(|hook| hook.id() == *id)
        });
    }

    /// Runs the hooks until this is dropped.
    pub async fn run(self: Arc<Self>) {
        let saving = tokio::spawn(self.services.progress.clone().keep_saving());
        let mut tasks = Tasks { workers: BTreeMap::new(), saving };
        loop {
            let hooks = lock(&self.hooks).clone();
            tasks.follow(&hooks, &self.services);
            self.changed.notified().await;
        }
    }

    /// Stores what the hooks have done.
    pub fn save(&self) {
        self.services.progress.save();
    }

    /// All hooks, and how they are doing.
    #[must_use]
    pub fn list(&self) -> Vec<HookInfo> {
        let hooks = lock(&self.hooks).clone();
        hooks.iter().map(|hook| info(hook, self.services.progress.of(&hook.id()))).collect()
    }

    /// Passes a sample event to every hook of this name, at once and without retries.
    pub async fn test(&self, name: &str) -> Result<Vec<HookOutcome>, UnknownHook> {
        let hooks = lock(&self.hooks).clone();
        let named: Vec<_> = hooks.iter().filter(|hook| hook.definition.name == name).collect();
        if named.is_empty() {
            let known = hooks.iter().map(|hook| hook.definition.name.clone()).collect();
            return Err(UnknownHook { name: name.to_owned(), known });
        }
        let mut outcomes = Vec::new();
        for hook in named {
            let message = self.services.message(&hook.definition, self.sample(hook)).into_sample();
            let outcome = perform(&*self.services.context, &hook.definition, &message).await;
            let error = outcome.err().map(|failure| failure.details);
            outcomes.push(HookOutcome { name: name.to_owned(), file: hook.file.clone(), error });
        }
        Ok(outcomes)
    }

    /// An event that could have started a hook.
    fn sample(&self, hook: &ActiveHook) -> EventRecord {
        let on = EventQuery { types: hook.definition.on.clone(), ..EventQuery::default() };
        let kind = Fact::TYPES.iter().find(|kind| on.matches(kind, None)).copied();
        let data = json!({ "reason": "this is a test of the hook" });
        EventRecord {
            time: format_time(self.services.clock.wall_ms()),
            kind: kind.unwrap_or_default().to_owned(),
            actor: Actor::cli(),
            data: if let Value::Object(data) = data { data } else { Map::new() },
            ..EventRecord::default()
        }
    }
}

fn info(hook: &ActiveHook, progress: HookProgress) -> HookInfo {
    let HookProgress {
        fingerprint: _,
        next: _,
        is_running: _,
        failing,
        fired,
        last_fired,
        failures,
        last_error,
        suppressed,
        dropped,
        waiting,
    } = progress;
    HookInfo {
        name: hook.definition.name.clone(),
        file: hook.file.clone(),
        on: hook.definition.on.clone(),
        run: hook.argv(),
        host: hook.host().map(str::to_owned),
        failing,
        fired,
        last_fired,
        failures,
        last_error,
        suppressed,
        dropped,
        waiting,
    }
}

/// The running tasks. They end when this is dropped, and their commands with them.
#[derive(Debug)]
struct Tasks {
    workers: BTreeMap<HookId, (Arc<ActiveHook>, JoinHandle<()>)>,
    saving: JoinHandle<()>,
}

impl Tasks {
    /// Ends the tasks of hooks that have changed or are gone, and starts those of new ones.
    fn follow(&mut self, hooks: &[Arc<ActiveHook>], services: &Arc<HookServices>) {
        self.workers.retain(|_, (hook, task)| {
            let stays = hooks.contains(hook);
            if !stays {
                task.abort();
            }
            stays
        });
        for hook in hooks {
            self.workers.entry(hook.id()).or_insert_with(|| {
                let worker = Worker::new(services.clone(), hook.clone());
                (hook.clone(), tokio::spawn(worker.run()))
            });
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.workers.values().for_each(|(_, task)| task.abort());
        self.saving.abort();
    }
}
