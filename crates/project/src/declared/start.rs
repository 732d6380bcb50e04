//! Starting a declared process on request: after its dependencies, and as the project file defines it
//! now.

use super::error::DeclaredError;
use super::file_status::{Declared, FileStatus};
use super::managed::{DeclaredStatus, May, Refusal, StartProgress};
use crate::project_file::{Definition, ProjectFile};
use patterm_panes::environment::Environment;
use patterm_panes::lifecycle::SIZE;
use patterm_panes::process::{Process, ProcessId, Recipe, Status};
use patterm_panes::{PaneError, StartExtra};
use patterm_wire::reason;
use std::sync::Arc;

/// An environment that a caller passed for declared processes.
#[derive(Debug, Clone, Copy)]
pub struct GivenEnvironment<'a> {
    /// The variables.
    pub variables: &'a Environment,
    /// A person passed it, so it also replaces one that a process already has. An agent's only applies to
    /// processes without one.
    pub is_persons: bool,
}

impl GivenEnvironment<'_> {
    fn applies_to(&self, process: &Process) -> bool {
        let has_own = process.environment.is_some() || process.environment_forgotten;
        !process.status.is_alive() && self.replaces(has_own)
    }

    fn replaces(&self, has_own: bool) -> bool {
        self.is_persons || !has_own
    }
}

impl Declared {
    /// Starts the declared process of this name, or says why not. An environment, if given, also applies
    /// to the dependencies that are started with it.
    pub async fn start_declared(
        &self,
        name: &str,
        environment: Option<GivenEnvironment<'_>>,
    ) -> Result<Process, DeclaredError> {
        self.read_project_file();
        let file = self.effect().unwrap_or_default();
        if !file.processes.contains_key(name) {
            return Err(self.not_declared(name, &file));
        }
        let process = match self.declared_entry(name) {
            Some(process) => process,
            None => {
                self.panes.admit_process()?;
                self.add_declared(name)?
            }
        };
        if process.status.is_alive() {
            return Err(DeclaredError::AlreadyRunning { name: name.to_owned(), id: process.id });
        }
        if let Some(environment) = environment {
            self.set_environment(&process, environment)?;
        }
        self.start(&process).await
    }

    /// Sets the environment for the next start of a declared process and of its dependencies, as far as
    /// they are not running. Returns its entry.
    pub fn set_environment(
        &self,
        process: &Process,
        environment: GivenEnvironment<'_>,
    ) -> Result<Process, PaneError> {
        let Some(entry) = process.declared.as_ref().filter(|_| !process.status.is_alive()) else {
            return Ok(process.clone());
        };
        let file = self.effect().unwrap_or_default();
        let needed = needed_for(&entry.name, &file).into_iter();
        for other in needed.filter_map(|name| self.declared_entry(name)) {
            if environment.applies_to(&other) {
                self.panes.set_environment(&other.id, environment.variables.clone())?;
            }
        }
        Ok(self.panes.processes.get(&process.id).unwrap_or_else(|| process.clone()))
    }

    /// Starts a declared process that is not running, or records that it is to be started.
    pub(super) async fn start(&self, process: &Process) -> Result<Process, DeclaredError> {
        if process.status.is_alive() {
            return Err(PaneError::AlreadyRunning(process.id.clone()).into());
        }
        if let Some(waiting) = self.prepare(process)? {
            return Ok(waiting);
        }
        let started = self.panes.begin(&process.id, &StartExtra::default()).await;
        self.notify();
        Ok(started?)
    }

    /// Why there is no declared process of this name.
    fn not_declared(&self, name: &str, file: &ProjectFile) -> DeclaredError {
        let name = name.to_owned();
        match self.file_status() {
            FileStatus::Untrusted { .. } => DeclaredError::Untrusted(name),
            FileStatus::Faulty { faults, .. } => DeclaredError::Faulty { name, faults },
            _ if file.processes.is_empty() => DeclaredError::NoneDeclared(name),
            _ => DeclaredError::Unknown { name, known: file.processes.keys().cloned().collect() },
        }
    }

    /// Prepares the start of a declared process: `None` if it may start now; if it waits for others,
    /// the entry as callers see it.
    pub fn prepare(&self, process: &Process) -> Result<Option<Process>, DeclaredError> {
        let Some(entry) = &process.declared else { return Ok(None) };
        let name = &entry.name;
        let effect = self.effect();
        let Some(file) = effect.filter(|file| file.processes.contains_key(name)) else {
            return Err(self.not_declared(name, &ProjectFile::default()));
        };
        let mut state = self.state();
        state.managed.want(name, &file, &|name| self.declared_entry(name));
        match state.managed.may(name, &file, |name| self.declared_entry(name)) {
            May::Start => {
                let managed = state.managed.of(name);
                (managed.wanted, managed.again_at) = (false, None);
                drop(state);
                self.record_pending();
                self.refresh_recipe(&process.id, &file.processes[name], 0)?;
                Ok(None)
            }
            May::Wait(_) => {
                drop(state);
                self.panes.processes.note(&process.id, |process| {
                    if let Some(declared) = &mut process.declared {
                        declared.restarts = 0;
                    }
                });
                self.record_pending();
                self.notify();
                let waiting = self.panes.processes.get(&process.id);
                Ok(waiting.map(|process| Process { status: Status::Starting, ..process }))
            }
            May::Never(refusal) => {
                let why = refusal.sentence();
                let managed = state.managed.of(name);
                (managed.wanted, managed.refused) = (false, Some(refusal));
                Err(DeclaredError::Never { name: name.clone(), why })
            }
        }
    }

    /// Whether a person decides about starting a process. Not if the project file in effect no longer
    /// declares it, or starts it anyway.
    pub fn is_left_to_people(&self, process: &Process) -> bool {
        let Some(entry) = &process.declared else { return true };
        let mut state = self.state();
        let named =
            state.effect.as_ref().is_some_and(|file| file.processes.contains_key(&entry.name));
        let managed = state.managed.of(&entry.name);
        named && !managed.wanted && managed.again_at.is_none()
    }

    /// The processes that a pending start waits for; `None` if no start is pending.
    pub fn starts_after(&self, process: &Process) -> Option<Vec<String>> {
        let entry = process.declared.as_ref().filter(|_| !process.status.is_alive())?;
        let mut state = self.state();
        let is_wanted = state.managed.of(&entry.name).wanted;
        drop(state);
        is_wanted.then(|| self.status(process).unwrap_or_default().waits_for)
    }

    /// Cancels a pending start; `false` if there was none.
    pub fn cancel_start(&self, process: &Process) -> bool {
        let Some(entry) = &process.declared else { return false };
        let mut state = self.state();
        let managed = state.managed.of(&entry.name);
        let pending = managed.wanted || managed.again_at.is_some() || managed.changed.is_some();
        if managed.wanted {
            // Whoever waits for the requested run must not be notified about the previous one.
            managed.refused = Some(Refusal::cancelled());
        }
        (managed.wanted, managed.again_at, managed.changed) = (false, None, None);
        drop(state);
        self.record_pending();
        self.notify();
        self.note_not_wanted();
        pending
    }

    /// Tells timers and callers that a pending start was cancelled.
    pub(super) fn note_not_wanted(&self) {
        self.observer().not_wanted();
        self.panes.processes.notify();
    }

    /// Updates an entry from its definition, right before it is started.
    pub(super) fn refresh_recipe(
        &self,
        id: &ProcessId,
        definition: &Definition,
        restarts: u32,
    ) -> Result<Process, PaneError> {
        self.note_listeners(id, definition);
        let (argv, env) = (definition.argv.clone(), definition.environment.clone());
        let (working_dir, env_file) = (definition.folder(self.root()), definition.env_file.clone());
        self.panes.update(id, |process| {
            let size = process.recipe.as_ref().map_or(SIZE, |recipe| recipe.size);
            let terminal_name = None;
            process.recipe = Some(Recipe { argv, env, env_file, working_dir, size, terminal_name });
            if let Some(declared) = &mut process.declared {
                declared.restarts = restarts;
            }
        })
    }

    /// Notes who already listens at the port of a process that is about to be started.
    fn note_listeners(&self, id: &ProcessId, definition: &Definition) {
        let entry = self.panes.processes.get(id).and_then(|process| process.declared);
        let Some(name) = entry.map(|entry| entry.name) else { return };
        let mut listeners = self.state().managed.of(&name).listeners.clone();
        listeners.note_start(definition.ready.as_ref(), &self.panes);
        self.state().managed.of(&name).listeners = listeners;
    }

    /// The entry of a declared process.
    pub fn declared_entry(&self, name: &str) -> Option<Process> {
        let is_it = |process: &Process| process.declared.as_ref().is_some_and(|d| d.name == name);
        self.panes.processes.all().into_iter().find(is_it)
    }

    /// The status of a declared process; `None` if it is not declared.
    pub fn status(&self, process: &Process) -> Option<DeclaredStatus> {
        let entry = process.declared.as_ref()?;
        let state = self.state();
        let file = state.effect.clone().unwrap_or_default();
        Some(state.managed.status(&entry.name, process, &file, |name| self.declared_entry(name)))
    }

    /// How far the start of the declared process of this name is, with its entry.
    pub fn progress(&self, name: &str) -> (Option<Process>, StartProgress) {
        let Some(process) = self.declared_entry(name) else { return (None, StartProgress::Failed) };
        let state = self.state();
        let file = state.effect.clone().unwrap_or_default();
        let progress = state.managed.progress(name, &process, &file);
        drop(state);
        (Some(process), progress)
    }

    /// Notes that a requested start failed, so that the run before it is not taken for the requested one.
    pub fn note_refused(&self, name: &str, error: &DeclaredError) {
        let mut state = self.state();
        let why = || format!("could not be started: {error}");
        let refused = || Refusal { why: why(), cause: None };
        state.managed.of(name).refused.get_or_insert_with(refused);
    }

    /// The declared process that failed first, if it kept this one from being started.
    pub fn cause(&self, name: &str) -> Option<String> {
        self.state().managed.cause(name).map(str::to_owned)
    }

    /// Whether a process is to be started, now or later.
    pub fn has_pending_start(&self) -> bool {
        self.state().managed.has_pending_start()
    }

    /// Why a declared process is not running; `None` if it is running or not declared.
    pub fn why_not_running(&self, process: &Process) -> Option<String> {
        let entry = process.declared.as_ref().filter(|_| !process.status.is_alive())?;
        let known = |file: Arc<ProjectFile>| file.processes.contains_key(&entry.name);
        if !self.effect().is_some_and(known) {
            return Some(match self.file_status() {
                FileStatus::Untrusted { .. } => "patterm.toml is not trusted".into(),
                FileStatus::Faulty { .. } => "patterm.toml has errors".into(),
                _ => "patterm.toml no longer declares it".into(),
            });
        }
        let DeclaredStatus { again_in, waits_for, problem, .. } = self.status(process)?;
        let ended = how_it_ended(process);
        if !waits_for.is_empty() {
            return Some(format!("waits for {}", waits_for.join(", ")));
        }
        if let Some(time) = again_in {
            let seconds = time.as_secs_f64().ceil();
            let why = problem.unwrap_or(ended);
            return Some(format!("{why}; restarts in {seconds:.0} s"));
        }
        problem.or(Some(ended))
    }

    /// Whether a process runs with an older definition.
    pub fn is_outdated(&self, process: &Process) -> bool {
        let file = self.effect();
        let definition = process.declared.as_ref().zip(file.as_ref());
        let definition = definition.and_then(|(entry, file)| file.processes.get(&entry.name));
        let Some((definition, recipe)) = definition.zip(process.recipe.as_ref()) else {
            return false;
        };
        let same = recipe.argv == definition.argv
            && recipe.env == definition.environment
            && recipe.env_file == definition.env_file
            && recipe.working_dir == definition.folder(self.root());
        process.status.is_alive() && !same
    }
}

/// How the last run of a process ended.
fn how_it_ended(process: &Process) -> String {
    let exit = process.exit.unwrap_or_default();
    match (process.status, exit.code, exit.signal) {
        _ if process.runs.get() == 0 => "it was not started".into(),
        (Status::Stopped, ..) => "it was stopped".into(),
        (Status::Failed, ..) => "it could not be started".into(),
        (Status::Lost, ..) => "it was lost when the server and the keeper were killed".into(),
        (_, Some(code), _) => reason::exit_code(code),
        (_, _, Some(signal)) => reason::exit_signal(signal),
        _ => "it ended".into(),
    }
}

/// A process and everything that it needs, directly or not.
fn needed_for<'a>(name: &'a str, file: &'a ProjectFile) -> Vec<&'a str> {
    let mut needed = vec![name];
    let mut next = 0;
    while let Some(definition) = needed.get(next).and_then(|name| file.processes.get(*name)) {
        for other in &definition.depends_on {
            if !needed.contains(&other.as_str()) {
                needed.push(other);
            }
        }
        next += 1;
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_environment_replaces_none_that_a_process_already_has() {
        let variables = Environment::from([("LD_PRELOAD", "/x.so")]);
        let given = |is_persons| GivenEnvironment { variables: &variables, is_persons };
        assert!(given(false).replaces(false), "the first one may be an agent's");
        assert!(!given(false).replaces(true));
        assert!(given(true).replaces(true) && given(true).replaces(false));
    }
}
