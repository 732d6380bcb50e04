//! How the project file stands: absent, faulty, untrusted or trusted, and what of it is in effect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::wards::Wards;
use crate::activity;
use crate::host::Host;
use crate::process::{DeclaredEntry, Kind, Status};
use crate::project_file::{Content, ProjectFile, Trust, TrustError, describe};
use patterm_store::project::Project;
use patterm_store::state::StateDir;

/// How the project file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none.
    Absent,
    /// It has mistakes, or cannot be read.
    Faulty {
        /// Each with its place.
        faults: Vec<String>,
        /// The hash of what was read.
        hash: Option<String>,
    },
    /// The person has not trusted this content.
    Untrusted {
        hash: String,
        /// What it would run, in words.
        would: String,
    },
    /// He has.
    Trusted { hash: String },
}

impl Standing {
    /// The hash of the content, where it could be read.
    pub(crate) fn hash(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Faulty { hash, .. } => hash.as_deref(),
            Self::Untrusted { hash, .. } | Self::Trusted { hash } => Some(hash),
        }
    }

    /// The word for it.
    pub(crate) fn name(&self) -> &'static str {
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
pub(crate) struct Declared {
    root: PathBuf,
    trust: Trust,
    state: Mutex<State>,
    /// One reads the file at a time.
    reading: Mutex<()>,
    /// Rung when there may be something to do.
    pub(super) bell: Notify,
    /// Counts how often the file came to stand another way, for those who show it.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct State {
    standing: Standing,
    /// What was trusted last in the life of this server: it stays in effect while a newer content is
    /// not trusted.
    pub(super) effect: Option<Arc<ProjectFile>>,
    pub(super) wards: Wards,
    /// Counts what comes into effect.
    pub(super) version: u64,
    /// Nothing runs from before this server, so everything that starts by itself is to be started.
    fresh: bool,
}

impl Declared {
    pub(crate) fn new(project: &Project, state: &StateDir) -> Self {
        Self {
            root: project.root().to_owned(),
            trust: Trust::of(project.root(), state),
            state: Mutex::new(State {
                standing: Standing::Absent,
                effect: None,
                wards: Wards::default(),
                version: 0,
                fresh: true,
            }),
            reading: Mutex::default(),
            bell: Notify::new(),
            changes: watch::Sender::new(0),
        }
    }

    /// Hears of every change of how the file stands.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How the file stood when it was last looked at.
    pub(crate) fn standing(&self) -> Standing {
        self.state().standing.clone()
    }

    /// What is in effect.
    pub(crate) fn effect(&self) -> Option<Arc<ProjectFile>> {
        self.state().effect.clone()
    }

    /// Where the file is, or would be.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(patterm_store::project::PROJECT_FILE)
    }

    /// Has the driver look for something to do.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }
}

/// What a look at the file found.
struct Looked {
    standing: Standing,
    file: Option<ProjectFile>,
}

fn look(declared: &Declared) -> Looked {
    let faulty = |faults, hash| Looked { standing: Standing::Faulty { faults, hash }, file: None };
    let content = match Content::read(&declared.root) {
        Ok(Some(content)) => content,
        Ok(None) => {
            return Looked { standing: Standing::Absent, file: Some(ProjectFile::default()) };
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
            Looked { standing: Standing::Trusted { hash }, file: Some(file) }
        }
        Ok(file) => {
            let would = describe(&file);
            Looked { standing: Standing::Untrusted { hash, would }, file: None }
        }
    }
}

impl Host {
    /// Looks at the project file and brings into effect what is new and trusted. Starts nothing
    /// itself.
    pub(crate) fn read_project_file(&self) {
        let declared = &self.declared;
        let _reading = declared.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Looked { standing, file } = look(declared);
        if declared.state().standing == standing && declared.state().version > 0 {
            return;
        }
        tracing::info!(state = standing.name(), "the project file was read");
        declared.state().standing = standing;
        if let Some(file) = file {
            self.take_effect(file);
        }
        let mut state = declared.state();
        state.version += 1;
        drop(state);
        declared.changes.send_modify(|count| *count += 1);
        declared.ring();
        // What can be restored depends on it.
        self.processes.ring();
    }

    /// Trusts the content with this hash, which must be what the file holds now.
    pub(crate) fn trust_project_file(&self, hash: &str) -> Result<(), TrustError> {
        self.read_project_file();
        match self.declared.standing() {
            Standing::Absent => return Err(TrustError::Absent),
            Standing::Faulty { faults, .. } => return Err(TrustError::Faulty(faults.join("\n"))),
            Standing::Untrusted { hash: now, .. } | Standing::Trusted { hash: now }
                if now != hash =>
            {
                return Err(TrustError::Changed);
            }
            Standing::Untrusted { .. } | Standing::Trusted { .. } => {}
        }
        {
            // Two who say yes at once must not write at once.
            let reading = self.declared.reading.lock();
            let _reading = reading.unwrap_or_else(PoisonError::into_inner);
            self.declared.trust.add(hash)?;
        }
        self.read_project_file();
        Ok(())
    }

    /// What an earlier server left runs on: nothing is started only because it starts by itself.
    pub(crate) fn note_takeover(&self) {
        self.declared.state().fresh = false;
    }

    /// Gives every process of the file an entry, and takes those that it does not name any more for
    /// ordinary ones. What is new and starts by itself is wanted from here on.
    fn take_effect(&self, file: ProjectFile) {
        let entries = self.processes.all();
        let known: BTreeSet<String> =
            entries.iter().filter_map(|p| Some(p.declared.as_ref()?.name.clone())).collect();
        for process in &entries {
            if process.declared.as_ref().is_some_and(|d| !file.processes.contains_key(&d.name)) {
                self.processes.note(&process.id, |process| process.declared = None);
            }
        }
        for name in file.processes.keys().filter(|name| !known.contains(*name)) {
            if let Err(error) = self.add_declared(name) {
                tracing::error!(%error, name, "a process of the project file has no entry");
            }
        }
        let mut state = self.declared.state();
        let fresh = std::mem::take(&mut state.fresh);
        state.wards.retain(|name| file.processes.contains_key(name));
        for process in entries.iter().filter(|_| fresh) {
            if let Some(declared) = &process.declared {
                // How it ended before this server is over and done.
                state.wards.of(&declared.name).seen = process.runs;
            }
        }
        let file = Arc::new(file);
        for (name, definition) in &file.processes {
            if definition.autostart && (fresh || !known.contains(name)) {
                state.wards.want(name, &file, &|name| self.declared_entry(name));
            }
        }
        state.effect = Some(file);
    }

    /// The entry of a declared process is closed; another may be made for it.
    pub(crate) fn forget_declared(&self, process: &crate::process::Process) {
        if let Some(declared) = &process.declared {
            self.declared.state().wards.forget(&declared.name);
        }
    }

    /// Makes an entry for a process that was not started yet.
    pub(super) fn add_declared(
        &self,
        name: &str,
    ) -> Result<crate::process::Process, patterm_store::state::StateError> {
        self.declared.state().wards.forget(name);
        let process = self.processes.add_with(name, Kind::Command, None, |process| {
            process.declared = Some(DeclaredEntry { name: name.to_owned(), restarts: 0 });
            process.status = Status::Stopped;
        })?;
        self.activities.set(&process.id, activity::ended(&process), true);
        Ok(process)
    }
}
