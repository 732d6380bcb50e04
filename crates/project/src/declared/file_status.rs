//! The project file's status (absent, faulty, untrusted or trusted) and the content in effect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, watch};

use super::managed::ManagedProcesses;
use super::observer::{Nobody, Observer};
use crate::line_diff::diff;
use crate::project_file::{
    Content, ProjectFile, SettingsProblems, Trust, TrustError, describe, visible,
};
use patterm_panes::Panes;
use patterm_panes::process::{DeclaredEntry, Kind, Status};
use patterm_store::project::Project;
use patterm_store::state::StateDir;

/// The status of the project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStatus {
    /// It does not exist.
    Absent,
    /// It has errors, or cannot be read.
    Faulty {
        /// The errors, each with its line and column.
        faults: Vec<String>,
        /// The hash of the content, if it could be read.
        hash: Option<String>,
    },
    /// No person has trusted this content.
    Untrusted {
        /// The hash of the content.
        hash: String,
        /// A description of what it would run.
        would: String,
        /// The lines that differ from the content that a person trusted last, if that was kept.
        changes: Option<String>,
    },
    /// A person has trusted this content.
    Trusted {
        /// The hash of the content.
        hash: String,
    },
}

impl FileStatus {
    /// The hash of the content, if it could be read.
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
    /// Counts changes of the file's status, and of the problems of the user's settings.
    changes: watch::Sender<u64>,
    /// Counts how often the driver has done everything that was due.
    rounds: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct State {
    status: FileStatus,
    /// What is wrong with the user's settings.
    settings: SettingsProblems,
    /// The content that was trusted last since this server started: it stays in effect until newer
    /// content is trusted.
    pub(super) effect: Option<Arc<ProjectFile>>,
    pub(super) managed: ManagedProcesses,
    /// Counts contents that came into effect.
    pub(super) version: u64,
    /// No process of an earlier server is running, so every process with autostart starts.
    fresh: bool,
    /// A driver does what is due. Without one, nothing is started later.
    pub(super) driven: bool,
    /// The pending starts of an earlier server are still to be continued.
    pub(super) takes_over: bool,
}

impl Declared {
    /// A project file that has not been read yet; `settings` is the file of the user's settings.
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
                settings: SettingsProblems::default(),
                effect: None,
                managed: ManagedProcesses::default(),
                version: 0,
                fresh: true,
                driven: false,
                takes_over: false,
            }),
            reading: Mutex::default(),
            wakeup: Notify::new(),
            changes: watch::Sender::new(0),
            rounds: watch::Sender::new(0),
        }
    }

    /// Sets the observer; there is only one.
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

    /// Changes of the file's status, and of the problems of the user's settings.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes whenever the driver has handled what happened to the processes.
    pub fn rounds(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// The driver has done everything that was due.
    pub(super) fn note_round(&self) {
        self.rounds.send_modify(|rounds| *rounds += 1);
    }

    /// The status of the file when it was last read.
    pub fn file_status(&self) -> FileStatus {
        self.state().status.clone()
    }

    /// What was wrong with the user's settings when they were last read.
    pub fn settings_problems(&self) -> SettingsProblems {
        self.state().settings.clone()
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

/// The result of reading the file.
struct FileReading {
    status: FileStatus,
    file: Option<ProjectFile>,
}

fn read_file(declared: &Declared) -> FileReading {
    let faulty =
        |faults, hash| FileReading { status: FileStatus::Faulty { faults, hash }, file: None };
    let content = match Content::read(&declared.root) {
        Ok(Some(content)) => content,
        Ok(None) => {
            return FileReading { status: FileStatus::Absent, file: Some(ProjectFile::default()) };
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
            FileReading { status: FileStatus::Trusted { hash }, file: Some(file) }
        }
        Ok(file) => {
            let would = describe(&file);
            let before = declared.trust.last_content();
            let changes = before.map(|before| diff(&before, &content.text, visible));
            FileReading { status: FileStatus::Untrusted { hash, would, changes }, file: None }
        }
    }
}

impl Declared {
    /// Reads the project file and puts new trusted content into effect; also checks the user's settings.
    /// Starts nothing itself.
    pub fn read_project_file(&self) {
        let declared = self;
        let _reading = declared.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_settings();
        let FileReading { status, file } = read_file(declared);
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
        // Which processes can be restored depends on it.
        self.panes.processes.notify();
    }

    /// Checks the user's settings, so that their problems can be shown.
    fn check_settings(&self) {
        let problems = SettingsProblems::of(self.settings.as_deref());
        if self.state().settings == problems {
            return;
        }
        for problem in problems.errors.iter().chain(&problems.ignored) {
            tracing::error!(problem, "the user's settings have a problem");
        }
        self.state().settings = problems;
        self.changes.send_modify(|count| *count += 1);
    }

    /// Trusts the content with this hash, which must be the current content of the file.
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
            // Two people may confirm at the same time.
            let reading = self.reading.lock();
            let _reading = reading.unwrap_or_else(PoisonError::into_inner);
            let content = Content::read(&self.root).ok().flatten();
            let content = content.filter(|content| content.hash == hash);
            self.trust.add(hash, &content.ok_or(TrustError::Changed)?.text)?;
        }
        self.read_project_file();
        Ok(())
    }

    /// Processes of an earlier server keep running: autostart starts nothing, and what was about to be started still
    /// is.
    pub fn note_takeover(&self) {
        let mut state = self.state();
        (state.fresh, state.takes_over) = (false, true);
    }

    /// Creates an entry for every declared process, and turns those that are no longer declared into
    /// ordinary ones. Marks new processes with autostart for starting.
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
                tracing::error!(%error, name, "cannot create the entry for a declared process");
            }
        }
        let is_fresh = self.state().fresh;
        let autostarts = |name: &str| file.processes.get(name).is_some_and(|d| d.autostart);
        for process in entries.iter().filter(|_| is_fresh) {
            if process.declared.as_ref().is_some_and(|declared| autostarts(&declared.name)) {
                self.panes.clear_environment(&process.id);
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
        drop(state);
        self.resume_pending();
    }

    /// Forgets a closed entry; its process may get a new one.
    pub fn forget(&self, process: &patterm_panes::process::Process) {
        if let Some(declared) = &process.declared {
            self.state().managed.forget(&declared.name);
        }
    }

    /// Creates an entry for a process that was not started yet.
    pub(super) fn add_declared(
        &self,
        name: &str,
    ) -> Result<patterm_panes::process::Process, patterm_store::state::StateError> {
        self.state().managed.forget(name);
        let process = self.panes.processes.add_with(name, Kind::Command, None, |process| {
            process.declared =
                Some(DeclaredEntry { name: name.to_owned(), ..DeclaredEntry::default() });
            process.status = Status::Stopped;
        })?;
        self.observer().added(&process);
        Ok(process)
    }
}
