//! Starting a declared process on request: after its dependencies, and as the project file defines it
//! now.

use super::error::DeclaredError;
use super::file_status::{Declared, FileStatus};
use super::managed::{DeclaredStatus, May};
use crate::project_file::{Definition, ProjectFile};
use patterm_panes::PaneError;
use patterm_panes::lifecycle::SIZE;
use patterm_panes::process::{Process, ProcessId, Recipe, Status};
use std::sync::atomic::Ordering;

impl Declared {
    /// Starts the declared process of this name, or says why not.
    pub async fn start_preset(&self, name: &str) -> Result<Process, DeclaredError> {
        self.read_project_file();
        let file = self.effect().unwrap_or_default();
        if !file.processes.contains_key(name) {
            return Err(self.no_preset(name, &file));
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
        self.start(&process).await
    }

    /// Starts a declared process that does not run, or notes that it is to be started.
    pub(super) async fn start(&self, process: &Process) -> Result<Process, DeclaredError> {
        if process.status.is_alive() {
            return Err(PaneError::AlreadyRunning(process.id.clone()).into());
        }
        if let Some(waiting) = self.prepare(process)? {
            return Ok(waiting);
        }
        let started = self.panes.begin(&process.id, &[]).await;
        self.notify();
        Ok(started?)
    }

    /// Stops a declared process, or cancels its pending start.
    pub(super) async fn stop(&self, process: &Process, signal: i32) -> Result<(), PaneError> {
        let waited = self.cancel_start(process);
        let run = match self.panes.running(process) {
            // Its start was pending.
            Err(_) if waited => return Ok(()),
            running => running?,
        };
        run.stopping.store(true, Ordering::Release);
        self.panes.end(&run, signal).await.map(drop)
    }

    /// Why there is no declared process of this name.
    fn no_preset(&self, name: &str, file: &ProjectFile) -> DeclaredError {
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
            return Err(self.no_preset(name, &ProjectFile::default()));
        };
        let mut state = self.state();
        state.managed.want(name, &file, &|name| self.declared_entry(name));
        match state.managed.may(name, &file, |name| self.declared_entry(name)) {
            May::Start => {
                let managed = state.managed.of(name);
                (managed.wanted, managed.again_at) = (false, None);
                drop(state);
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
                self.notify();
                let waiting = self.panes.processes.get(&process.id);
                Ok(waiting.map(|process| Process { status: Status::Starting, ..process }))
            }
            May::Never(why) => {
                state.managed.of(name).wanted = false;
                Err(DeclaredError::Never { name: name.clone(), why })
            }
        }
    }

    /// Whether a person decides about starting a process: not if the project file in effect does not
    /// declare it, or starts it anyway.
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
        (managed.wanted, managed.again_at, managed.changed) = (false, None, None);
        drop(state);
        self.notify();
        self.note_not_wanted();
        pending
    }

    /// Tells timers and callers that a pending start was cancelled.
    pub(super) fn note_not_wanted(&self) {
        self.observer().not_wanted();
        self.panes.processes.notify();
    }

    /// Updates an entry from its definition.
    pub(super) fn refresh_recipe(
        &self,
        id: &ProcessId,
        definition: &Definition,
        restarts: u32,
    ) -> Result<Process, PaneError> {
        let (argv, env) = (definition.argv.clone(), definition.environment.clone());
        let working_dir = definition.folder(self.root());
        self.panes.update(id, |process| {
            let size = process.recipe.as_ref().map_or(SIZE, |recipe| recipe.size);
            process.recipe = Some(Recipe { argv, env, working_dir, size });
            if let Some(declared) = &mut process.declared {
                declared.restarts = restarts;
            }
        })
    }

    /// The entry of a declared process.
    pub fn declared_entry(&self, name: &str) -> Option<Process> {
        let is_it = |process: &Process| process.declared.as_ref().is_some_and(|d| d.name == name);
        self.panes.processes.all().into_iter().find(is_it)
    }

    /// The status of a declared process; `None` for one that is not.
    pub fn status(&self, process: &Process) -> Option<DeclaredStatus> {
        let entry = process.declared.as_ref()?;
        let state = self.state();
        let file = state.effect.clone().unwrap_or_default();
        Some(state.managed.status(&entry.name, process, &file, |name| self.declared_entry(name)))
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
            && recipe.working_dir == definition.folder(self.root());
        process.status.is_alive() && !same
    }
}
