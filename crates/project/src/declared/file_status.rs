//! The project file's status (absent, faulty, untrusted or trusted) and the content in effect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, watch};

use super::managed::ManagedProcesses;
use super::observer::{Nobody, Observer};
use crate::project_file::{Content, ProjectFile, Trust, TrustError, describe};
use patterm_panes::Panes;
use patterm_panes::process::{DeclaredEntry, Kind, Status};
use patterm_store::project::Project;
use patterm_store::state::StateDir;

/// The status of the project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStatus {
    /// There is none.
    Absent,
    /// It has mistakes, or cannot be read.
    Faulty {
        /// Each with its line and column.
        faults: Vec<String>,
        /// The hash of what was read.
        hash: Option<String>,
    },
    /// The person has not trusted this content.
    Untrusted {
        /// The hash of the content.
        hash: String,
        /// What it would run, in words.
        would: String,
    },
    /// The person has trusted it.
    Trusted {
        /// The hash of the content.
        hash: String,
    },
}

impl FileStatus {
    /// The hash of the content, where it could be read.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Faulty { hash, .. } => hash.as_deref(),
            Self::Untrusted { hash, .. } | Self::Trusted { hash } => Some(hash),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Faulty { .. } => "faulty",
            Self::Untrusted { .. } => "untrusted",
            Self::Trusted { .. } => "trusted",
        }
    }
}

/// The project file, and the processes it declares.
#[derive(Debug)]
pub struct Declared {
    pub(super) panes: Arc<Panes>,
    root: PathBuf,
    /// The user's settings.
    pub(super) settings: Option<PathBuf>,
    observer: OnceLock<Box<dyn Observer>>,
    trust: Trust,
    state: Mutex<State>,
    /// Held while the file is read.
    reading: Mutex<()>,
    /// Notified when there may be something to do.
    pub(super) wakeup: Notify,
    /// Counts changes of the file's status.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct State {
    status: FileStatus,
    /// The content that was trusted last since this server started: it stays in effect until newer
    /// content is trusted.
    pub(super) effect: Option<Arc<ProjectFile>>,
    pub(super) managed: ManagedProcesses,
    /// Counts contents that came into effect.
    pub(super) version: u64,
    /// No process of an earlier server runs, so that everything with autostart is to be started.
    fresh: bool,
}

impl Declared {
    /// Reads nothing yet. `settings` are the user's.
    pub fn new(
        panes: Arc<Panes>,
        project: &Project,
        state: &StateDir,
        settings: Option<&Path>,
    ) -> Self {
        Self {
            panes,
            settings: settings.map(Path::to_owned),
            observer: OnceLock::new(),
            root: project.root().to_owned(),
            trust: Trust::of(project.root(), state),
            state: Mutex::new(State {
                status: FileStatus::Absent,
                effect: None,
                managed: ManagedProcesses::default(),
                version: 0,
                fresh: true,
            }),
            reading: Mutex::default(),
            wakeup: Notify::new(),
            changes: watch::Sender::new(0),
        }
    }

    /// Sets the one observer.
    pub fn set_observer(&self, observer: Box<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// Tells the observer what the files say now.
    pub fn note_reconfigured(&self) {
        self.observer().reconfigured();
    }

    pub(super) fn observer(&self) -> &dyn Observer {
        self.observer.get().map_or(&Nobody, |observer| &**observer)
    }

    /// Changes of the file's status.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The status of the file when it was last read.
    pub fn file_status(&self) -> FileStatus {
        self.state().status.clone()
    }

    /// The content in effect.
    pub fn effect(&self) -> Option<Arc<ProjectFile>> {
        self.state().effect.clone()
    }

    /// Where the file is, or would be.
    pub fn path(&self) -> PathBuf {
        self.root.join(patterm_store::project::PROJECT_FILE)
    }

    /// Wakes the driver.
    pub fn notify(&self) {
        self.wakeup.notify_one();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }
}

/// What reading the file found.
struct Looked {
    status: FileStatus,
    file: Option<ProjectFile>,
}

fn look(declared: &Declared) -> Looked {
    let faulty = |faults, hash| Looked { status: FileStatus::Faulty { faults, hash }, file: None };
    let content = match Content::read(&declared.root) {
        Ok(Some(content)) => content,
        Ok(None) => {
            return Looked { status: FileStatus::Absent, file: Some(ProjectFile::default()) };
        }
        Err(error) => return faulty(vec![error.to_string()], None),
    };
    let hash = content.hash;
    match ProjectFile::parse(&content.text) {
        Err(faults) => {
            let name = content.path.display();
            let faults = faults.iter().map(|fault| format!("{name}:{fault}")).collect();
            faulty(faults, Some(hash))
        }
        Ok(file) if declared.trust.holds(&hash) => {
            Looked { status: FileStatus::Trusted { hash }, file: Some(file) }
        }
        Ok(file) => {
            let would = describe(&file);
            Looked { status: FileStatus::Untrusted { hash, would }, file: None }
        }
    }
}

impl Declared {
    /// Reads the project file and puts new trusted content into effect. Starts nothing itself.
    pub fn read_project_file(&self) {
        let declared = self;
        let _reading = declared.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Looked { status, file } = look(declared);
        if declared.state().status == status && declared.state().version > 0 {
            return;
        }
        tracing::info!(state = status.name(), "the project file was read");
        declared.state().status = status;
        if let Some(file) = file {
            self.take_effect(file);
        }
        let mut state = declared.state();
        state.version += 1;
        drop(state);
        declared.changes.send_modify(|count| *count += 1);
        declared.notify();
        // What can be restored depends on it.
        self.panes.processes.notify();
    }

    /// Trusts the content with this hash, which must be what the file holds now.
    pub fn trust_project_file(&self, hash: &str) -> Result<(), TrustError> {
        self.read_project_file();
        match self.file_status() {
            FileStatus::Absent => return Err(TrustError::Absent),
            FileStatus::Faulty { faults, .. } => return Err(TrustError::Faulty(faults.join("\n"))),
            FileStatus::Untrusted { hash: now, .. } | FileStatus::Trusted { hash: now }
                if now != hash =>
            {
                return Err(TrustError::Changed);
            }
            FileStatus::Untrusted { .. } | FileStatus::Trusted { .. } => {}
        }
        {
            // Two persons may confirm at the same time.
            let reading = self.reading.lock();
            let _reading = reading.unwrap_or_else(PoisonError::into_inner);
            self.trust.add(hash)?;
        }
        self.read_project_file();
        Ok(())
    }

    /// Processes of an earlier server keep running: autostart starts nothing.
    pub fn note_takeover(&self) {
        self.state().fresh = false;
    }

    /// Gives every declared process an entry, and makes those that are no longer declared ordinary
    /// ones. New processes with autostart are to be started.
    fn take_effect(&self, file: ProjectFile) {
        let entries = self.panes.processes.all();
        let known: BTreeSet<String> =
            entries.iter().filter_map(|p| Some(p.declared.as_ref()?.name.clone())).collect();
        for process in &entries {
            if process.declared.as_ref().is_some_and(|d| !file.processes.contains_key(&d.name)) {
                self.panes.processes.note(&process.id, |process| process.declared = None);
            }
        }
        for name in file.processes.keys().filter(|name| !known.contains(*name)) {
            if let Err(error) = self.add_declared(name) {
                tracing::error!(%error, name, "a process of the project file has no entry");
            }
        }
        let mut state = self.state();
        let fresh = std::mem::take(&mut state.fresh);
        state.managed.retain(|name| file.processes.contains_key(name));
        for process in entries.iter().filter(|_| fresh) {
            if let Some(declared) = &process.declared {
                // Ends before this server started do not count.
                state.managed.of(&declared.name).seen = process.runs;
            }
        }
        let file = Arc::new(file);
        for (name, definition) in &file.processes {
            if definition.autostart && (fresh || !known.contains(name)) {
                state.managed.want(name, &file, &|name| self.declared_entry(name));
            }
        }
        state.effect = Some(file);
    }

    /// Forgets a closed entry; another may be made for its process.
    pub fn forget(&self, process: &patterm_panes::process::Process) {
        if let Some(declared) = &process.declared {
            self.state().managed.forget(&declared.name);
        }
    }

    /// Makes an entry for a process that was not started yet.
    pub(super) fn add_declared(
        &self,
        name: &str,
    ) -> Result<patterm_panes::process::Process, patterm_store::state::StateError> {
        self.state().managed.forget(name);
        let process = self.panes.processes.add_with(name, Kind::Command, None, |process| {
            process.declared = Some(DeclaredEntry { name: name.to_owned(), restarts: 0 });
            process.status = Status::Stopped;
        })?;
        self.observer().added(&process);
        Ok(process)
    }
}
