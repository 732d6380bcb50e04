//! Starting a declared process: by whoever asks, with what it needs before it, and as the file says
//! now.

use super::standing::Standing;
use super::wards::{May, Seen};
use crate::host::Host;
use crate::life::SIZE;
use crate::process::{Process, ProcessId, Recipe, Status};
use crate::project_file::{Definition, ProjectFile};
use crate::tools::{ErrorKind, ToolError};

impl Host {
    /// Starts the declared process of this name, or says why not.
    pub(crate) async fn start_preset(&self, name: &str) -> Result<Process, ToolError> {
        self.read_project_file();
        let file = self.declared.effect().unwrap_or_default();
        if !file.processes.contains_key(name) {
            return Err(self.no_preset(name, &file));
        }
        let process = match self.declared_entry(name) {
            Some(process) => process,
            None => {
                self.admit_process()?;
                self.add_declared(name)?
            }
        };
        if process.status.is_alive() {
            let id = &process.id;
            let message =
                format!("`{name}` runs already, as {id}; restart_process starts it again");
            let error = ToolError::new(ErrorKind::AlreadyRunning, message);
            return Err(error.with("process_id", id.as_str()));
        }
        self.start(&process).await.map(|(process, _)| process)
    }

    /// Why there is no declared process of this name.
    fn no_preset(&self, name: &str, file: &ProjectFile) -> ToolError {
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message);
        match self.declared.standing() {
            Standing::Untrusted { .. } => unavailable(format!(
                "`{name}` cannot be started: patterm.toml is not trusted; a person looks at it \
                 with `patterm trust`"
            )),
            Standing::Faulty { faults, .. } => unavailable(format!(
                "`{name}` cannot be started: patterm.toml has mistakes: {}",
                faults.join("; ")
            )),
            _ if file.processes.is_empty() => {
                let why = format_args!("names `{name}`, and patterm.toml declares no processes");
                ToolError::invalid("preset", why)
            }
            _ => {
                let known: Vec<_> = file.processes.keys().map(String::as_str).collect();
                let why = format_args!(
                    "names `{name}`, which patterm.toml does not declare; it declares {}",
                    known.join(", ")
                );
                ToolError::invalid("preset", why)
            }
        }
    }

    /// Makes a declared process that does not run ready to be started: `None` if it may start now,
    /// the process as callers are told of it if it waits for others.
    pub(crate) fn prepare_declared(&self, process: &Process) -> Result<Option<Process>, ToolError> {
        let Some(entry) = &process.declared else { return Ok(None) };
        let name = &entry.name;
        let effect = self.declared.effect();
        let Some(file) = effect.filter(|file| file.processes.contains_key(name)) else {
            return Err(self.no_preset(name, &ProjectFile::default()));
        };
        let mut state = self.declared.state();
        state.wards.want(name, &file, &|name| self.declared_entry(name));
        match state.wards.may(name, &file, |name| self.declared_entry(name)) {
            May::Start => {
                let ward = state.wards.of(name);
                (ward.wanted, ward.again_at) = (false, None);
                drop(state);
                self.refresh_recipe(&process.id, &file.processes[name], 0)?;
                Ok(None)
            }
            May::Wait(_) => {
                drop(state);
                self.processes.note(&process.id, |process| {
                    if let Some(declared) = &mut process.declared {
                        declared.restarts = 0;
                    }
                });
                self.declared.ring();
                let waiting = self.processes.get(&process.id);
                Ok(waiting.map(|process| Process { status: Status::Starting, ..process }))
            }
            May::Never(why) => {
                state.wards.of(name).wanted = false;
                let message = format!("`{name}` cannot be started: {why}");
                Err(ToolError::new(ErrorKind::Unavailable, message))
            }
        }
    }

    /// Whether it is for people to start a process: none that the file in effect does not name, and
    /// none that it has started anyway.
    pub(crate) fn is_left_to_people(&self, process: &Process) -> bool {
        let Some(entry) = &process.declared else { return true };
        let mut state = self.declared.state();
        let named =
            state.effect.as_ref().is_some_and(|file| file.processes.contains_key(&entry.name));
        let ward = state.wards.of(&entry.name);
        named && !ward.wanted && ward.again_at.is_none()
    }

    /// The processes that one waits for before it is started; `None` for one that does not wait to be
    /// started.
    pub(crate) fn starts_after(&self, process: &Process) -> Option<Vec<String>> {
        let entry = process.declared.as_ref().filter(|_| !process.status.is_alive())?;
        let mut state = self.declared.state();
        let is_wanted = state.wards.of(&entry.name).wanted;
        drop(state);
        is_wanted.then(|| self.declared_seen(process).unwrap_or_default().waits_for)
    }

    /// Takes back that a process is to be started; `false` if it was not.
    pub(crate) fn unwant_declared(&self, process: &Process) -> bool {
        let Some(entry) = &process.declared else { return false };
        let mut state = self.declared.state();
        let ward = state.wards.of(&entry.name);
        let pending = ward.wanted || ward.again_at.is_some() || ward.changed.is_some();
        (ward.wanted, ward.again_at, ward.changed) = (false, None, None);
        drop(state);
        self.declared.ring();
        self.note_not_wanted();
        pending
    }

    /// A process that was to be started will not be: timers and callers may wait for that.
    pub(super) fn note_not_wanted(&self) {
        self.timers.ring();
        self.processes.ring();
    }

    /// Writes into an entry how its definition says it is started now.
    pub(super) fn refresh_recipe(
        &self,
        id: &ProcessId,
        definition: &Definition,
        restarts: u32,
    ) -> Result<Process, ToolError> {
        let (argv, env) = (definition.argv.clone(), definition.environment.clone());
        let working_dir = definition.folder(self.declared.root());
        self.update(id, |process| {
            let size = process.recipe.as_ref().map_or(SIZE, |recipe| recipe.size);
            process.recipe = Some(Recipe { argv, env, working_dir, size });
            if let Some(declared) = &mut process.declared {
                declared.restarts = restarts;
            }
        })
    }

    /// The entry of a declared process.
    pub(crate) fn declared_entry(&self, name: &str) -> Option<Process> {
        let is_it = |process: &Process| process.declared.as_ref().is_some_and(|d| d.name == name);
        self.processes.all().into_iter().find(is_it)
    }

    /// How a declared process stands; `None` for one that is not.
    pub(crate) fn declared_seen(&self, process: &Process) -> Option<Seen> {
        let entry = process.declared.as_ref()?;
        let state = self.declared.state();
        let file = state.effect.clone().unwrap_or_default();
        Some(state.wards.seen(&entry.name, process, &file, |name| self.declared_entry(name)))
    }

    /// Whether a process runs as an earlier content of the file said.
    pub(crate) fn is_outdated(&self, process: &Process) -> bool {
        let file = self.declared.effect();
        let definition = process.declared.as_ref().zip(file.as_ref());
        let definition = definition.and_then(|(entry, file)| file.processes.get(&entry.name));
        let Some((definition, recipe)) = definition.zip(process.recipe.as_ref()) else {
            return false;
        };
        let same = recipe.argv == definition.argv
            && recipe.env == definition.environment
            && recipe.working_dir == definition.folder(self.declared.root());
        process.status.is_alive() && !same
    }
}
