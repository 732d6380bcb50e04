//! The environments that processes were started with. Each distinct environment is stored once, in a file that
//! only its owner can read, until the last entry that uses it is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use patterm_store::hex;
use patterm_store::private::{PrivateDir, Refusal};
use patterm_store::state::{StateDir, StateError, refused};
use sha2::{Digest, Sha256};

use crate::environment::{self, Environment, UPDATED};
use crate::process::{Process, ProcessId, Processes};

/// The folder of the files, in the state folder.
const FOLDER: &str = "environments";

/// The largest file that is read: more than execve accepts cannot have been written.
const FILE_BYTES: u64 = 8 << 20;

/// What the user's settings say about environments; queried at each use, so that changes take effect at once.
pub trait EnvironmentPolicy: fmt::Debug + Send + Sync {
    /// Whether environments are kept for restarts.
    fn remembers(&self) -> bool;
    /// The variables that an attachment updates for programs that are started later.
    fn updated(&self) -> Vec<String>;
}

/// The policy without settings.
#[derive(Debug)]
struct NoSettings;

impl EnvironmentPolicy for NoSettings {
    fn remembers(&self) -> bool {
        true
    }

    fn updated(&self) -> Vec<String> {
        UPDATED.map(str::to_owned).to_vec()
    }
}

/// The server's environment, and those that processes were started with.
#[derive(Debug)]
pub struct Environments {
    folder: PathBuf,
    server: Environment,
    policy: OnceLock<Box<dyn EnvironmentPolicy>>,
    /// The variables that the last attachment updated; `None` for one that is to be removed.
    attached: Mutex<Vec<(OsString, Option<OsString>)>>,
    /// Files that entries are about to use, each with the number of those entries.
    pinned: Mutex<BTreeMap<String, usize>>,
    /// Environments that are not stored on disk.
    in_memory: Mutex<HashMap<ProcessId, InMemory>>,
}

/// An environment that is not stored on disk: it is lost when this server ends.
#[derive(Debug)]
struct InMemory {
    environment: Arc<Environment>,
    /// It was set for a start that has not happened yet.
    fresh: bool,
}

/// An environment on its way into an entry.
#[derive(Debug)]
pub(crate) enum Stored<'a> {
    /// In the file of this name, which stays until this is dropped.
    File(String, &'a Environments),
    /// In memory only.
    Memory(Environment),
}

impl Stored<'_> {
    /// Notes it in an entry.
    pub(crate) fn note(&self, process: &mut Process) {
        match self {
            Self::File(name, _) => {
                process.environment = Some(name.clone());
                process.environment_forgotten = false;
            }
            Self::Memory(_) => {
                process.environment = None;
                process.environment_forgotten = true;
            }
        }
    }
}

impl Drop for Stored<'_> {
    fn drop(&mut self) {
        let Self::File(name, environments) = self else { return };
        let mut pinned = environments.pinned();
        if let Some(count) = pinned.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(name);
            }
        }
    }
}

impl Environments {
    pub(crate) fn new(state: &StateDir) -> Self {
        Self {
            folder: state.file(FOLDER),
            server: environment::of_this_process(),
            policy: OnceLock::new(),
            attached: Mutex::default(),
            pinned: Mutex::default(),
            in_memory: Mutex::default(),
        }
    }

    /// Sets the policy, once.
    pub fn set_policy(&self, policy: Box<dyn EnvironmentPolicy>) {
        let _ = self.policy.set(policy);
    }

    fn policy(&self) -> &dyn EnvironmentPolicy {
        self.policy.get().map_or(&NoSettings, |policy| &**policy)
    }

    /// The server's own, as programs get it.
    pub fn server(&self) -> &Environment {
        &self.server
    }

    /// The environment of a new program whose caller passed none: the server's, with the variables that the
    /// last attachment updated.
    pub fn of_new(&self) -> Environment {
        let mut environment = self.server.clone();
        self.update(&mut environment);
        environment
    }

    /// Takes the listed variables from an attached terminal.
    pub fn note_attached(&self, terminal: &Environment) {
        let value = |name: String| {
            let value = terminal.get(&name).map(ToOwned::to_owned);
            (OsString::from(name), value)
        };
        let listed = self.policy().updated().into_iter();
        let listed = listed.filter(|name| !environment::is_own(name.as_ref()));
        *self.attached.lock().unwrap_or_else(PoisonError::into_inner) = listed.map(value).collect();
    }

    fn update(&self, environment: &mut Environment) {
        for (name, value) in &*self.attached.lock().unwrap_or_else(PoisonError::into_inner) {
            match value {
                Some(value) => environment.insert(name, value),
                None => environment.remove(name),
            }
        }
    }

    /// Stores an environment for an entry: on disk before this returns, or in memory if the settings
    /// say so.
    pub(crate) fn store(&self, environment: Environment) -> Result<Stored<'_>, StateError> {
        if !self.policy().remembers() {
            return Ok(Stored::Memory(environment));
        }
        let block = environment.to_block();
        let name = hex::encode(&Sha256::digest(&block));
        // Counted before the check for the file, so that the file is not removed in between.
        *self.pinned().entry(name.clone()).or_default() += 1;
        let stored = Stored::File(name.clone(), self);
        let folder = PrivateDir::make(&self.folder).map_err(refused("make", &self.folder))?;
        let is_there = folder.read(&name, FILE_BYTES).is_ok_and(|content| content == block);
        if !is_there {
            let failed = |e| refused("write", &self.folder.join(&name))(Refusal::Io(e));
            folder.write(&name, &block).map_err(failed)?;
        }
        Ok(stored)
    }

    /// Completes storing: the entry now refers to the environment.
    pub(crate) fn settle(&self, id: &ProcessId, mut stored: Stored<'_>) {
        match &mut stored {
            Stored::File(..) => drop(self.in_memory().remove(id)),
            Stored::Memory(environment) => {
                let environment = Arc::new(std::mem::take(environment));
                self.in_memory().insert(id.clone(), InMemory { environment, fresh: true });
            }
        }
    }

    /// The environment of a process's next start.
    pub fn of_start(&self, process: &Process) -> Environment {
        let in_memory = self
            .in_memory()
            .get(&process.id)
            .filter(|in_memory| in_memory.fresh)
            .map(|u| u.environment.clone());
        in_memory
            .map(|environment| (*environment).clone())
            .or_else(|| self.kept(process))
            .unwrap_or_else(|| self.of_new())
    }

    /// Records that a process was started: an environment in memory is not used for another start.
    pub(crate) fn note_started(&self, id: &ProcessId) {
        if let Some(in_memory) = self.in_memory().get_mut(id) {
            in_memory.fresh = false;
        }
    }

    /// The environment that programs started by a process inherit from its pane.
    pub fn inherited(&self, process: &Process) -> Environment {
        let mut environment = self.latest(process).unwrap_or_else(|| self.server.clone());
        self.update(&mut environment);
        environment
    }

    /// Copies the variables that a process's caller has set by name into another environment for it.
    pub(crate) fn keep_set(&self, process: &Process, environment: &mut Environment) {
        if process.set_variables.is_empty() {
            return;
        }
        let Some(latest) = self.latest(process) else { return };
        for name in &process.set_variables {
            if let Some(value) = latest.get(name) {
                environment.insert(name, value);
            }
        }
    }

    /// The environment that was last set for a process, if it is still known.
    fn latest(&self, process: &Process) -> Option<Environment> {
        let in_memory = self.in_memory().get(&process.id).map(|u| u.environment.clone());
        in_memory.map(|environment| (*environment).clone()).or_else(|| self.kept(process))
    }

    /// Why a process's next start does not have the environment that it was started with before.
    pub fn why_changed(&self, process: &Process) -> Option<String> {
        if self.in_memory().get(&process.id).is_some_and(|in_memory| in_memory.fresh) {
            return None;
        }
        let with = "it now runs with the server's environment";
        if process.environment_forgotten {
            return Some(format!(
                "{with}: its own was not stored (remember_environment = false, or settings with errors)"
            ));
        }
        let name = process.environment.as_ref().filter(|_| self.kept(process).is_none())?;
        let file = self.folder.join(name);
        Some(format!("{with}: the file {} is gone or damaged", file.display()))
    }

    fn kept(&self, process: &Process) -> Option<Environment> {
        let name = process.environment.as_ref()?;
        let block = PrivateDir::open(&self.folder).and_then(|dir| dir.read(name, FILE_BYTES));
        match block {
            Ok(block) if hex::encode(&Sha256::digest(&block)) == *name => {
                Some(Environment::from_block(&block))
            }
            Ok(_) => {
                tracing::error!(id = %process.id, "the file with the environment of a process is damaged");
                None
            }
            Err(error) => {
                tracing::error!(id = %process.id, %error, "cannot read the environment of a process");
                None
            }
        }
    }

    /// Removes every file that no entry uses.
    pub(crate) fn sweep(&self, table: &Processes) {
        let Ok(folder) = PrivateDir::open(&self.folder) else { return };
        // Locked before the table is read: the entry of a file that is no longer pinned is in the table.
        let pinned = self.pinned();
        let processes = table.all();
        let used: BTreeSet<&str> =
            processes.iter().filter_map(|process| process.environment.as_deref()).collect();
        for name in folder.names().unwrap_or_default() {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let content = name.split('.').next().unwrap_or(name);
            if !used.contains(name) && !pinned.contains_key(content) {
                let _ = folder.remove(name);
            }
        }
        drop(pinned);
        let known: BTreeSet<&str> = processes.iter().map(|process| process.id.as_str()).collect();
        self.in_memory().retain(|id, _| known.contains(id.as_str()));
    }

    fn pinned(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_memory(&self) -> MutexGuard<'_, HashMap<ProcessId, InMemory>> {
        self.in_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
