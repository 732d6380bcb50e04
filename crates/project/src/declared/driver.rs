//! The one task that runs declared processes: it sleeps until the project file changes, a process ends
//! or becomes ready, a watched file changes, or a restart is due.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::file_status::Declared;
use super::folders::{Change, Folders};
use super::managed::May;
use super::policy::{End, Next, next};
use super::ready;
use super::sources::Sources;
use crate::project_file::{Definition, ProjectFile, ReadyWhen};
use patterm_panes::process::{Process, Status};
use patterm_store::project::PROJECT_FILE;

/// How long after the last change of a watched file a process is restarted: files are written one
/// after the other.
const QUIET: Duration = Duration::from_millis(200);

/// How long after the first change, at the latest.
const LATEST: Duration = Duration::from_secs(2);

/// The signal that ends a process before a restart.
const TERMINATE: i32 = 15;

/// Starts, watches and restarts declared processes.
pub struct Driver {
    declared: Arc<Declared>,
    /// Watches the folders of the project file and the settings.
    place: Option<Folders>,
    /// The target of the project file, if it is a link.
    target: Option<PathBuf>,
    /// Watches the folders of the files that processes watch.
    watched: Option<Folders>,
    sources: Arc<Sources>,
    /// The version of the project file that was handled last.
    version: u64,
}

impl Driver {
    /// A driver; it needs the runtime.
    pub fn new(declared: Arc<Declared>) -> Self {
        let settings = settings_folder(&declared);
        let folders: Vec<_> = std::iter::once(declared.root().to_owned()).chain(settings).collect();
        let place = watching(&folders);
        let place = place.inspect_err(|error| {
            // The kernel limits the inotify instances of a user to some hundred.
            tracing::error!(%error, "changes of the project file are seen when it is asked for");
        });
        let (watched, sources) = (None, Arc::default());
        Self { declared, place: place.ok(), target: None, watched, sources, version: 0 }
    }

    /// Runs for ever.
    pub async fn run(mut self) {
        // It may have changed before it was watched.
        self.declared.read_project_file();
        loop {
            self.follow_link();
            self.follow_file().await;
            let file = self.declared.effect().unwrap_or_default();
            for name in file.in_order() {
                look_after(&self.declared, &file, name).await;
            }
            let wake = self.declared.state().managed.next_at();
            let Self { declared, place, target, watched, .. } = &mut self;
            tokio::select! {
                () = declared.wakeup.notified() => {}
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = file_changed(place, target.as_deref(), declared.settings.as_deref()) => {
                    declared.read_project_file();
                    declared.observer().reconfigured();
                }
                changes = changed(watched) => self.note_changes(changes).await,
            }
        }
    }

    /// If the project file is a link, its target is watched too.
    fn follow_link(&mut self) {
        let root = self.declared.root();
        let file = root.join(PROJECT_FILE);
        let elsewhere = |target: &PathBuf| *target != file && target.is_file();
        let target = file.canonicalize().ok().filter(elsewhere);
        if target == self.target {
            return;
        }
        let beside = target.as_ref().and_then(|target| target.parent()).map(Path::to_owned);
        let folders: Vec<_> = std::iter::once(root.to_owned())
            .chain(beside)
            .chain(settings_folder(&self.declared))
            .collect();
        if let Some(Err(error)) = self.place.as_mut().map(|place| place.set(&folders)) {
            tracing::warn!(%error, "what the project file links to is not watched");
        }
        self.target = target;
        // It may have changed before it was watched.
        self.declared.read_project_file();
    }

    /// Watches what the project file in effect asks for.
    async fn follow_file(&mut self) {
        let (version, file) = {
            let state = self.declared.state();
            (state.version, state.effect.clone())
        };
        if version == self.version {
            return;
        }
        self.version = version;
        self.declared.observer().reconfigured();
        self.sources = Arc::new(file.map(|file| Sources::of(&file)).unwrap_or_default());
        self.watch_folders().await;
    }

    async fn watch_folders(&mut self) {
        if self.sources.is_empty() {
            self.watched = None;
            return;
        }
        let (sources, root) = (self.sources.clone(), self.declared.root().to_owned());
        let folders = tokio::task::spawn_blocking(move || sources.folders(&root)).await;
        let folders = folders.unwrap_or_default();
        let set = match &mut self.watched {
            Some(watched) => watched.set(&folders),
            None => watching(&folders).map(|watched| self.watched = Some(watched)),
        };
        if let Err(error) = set {
            tracing::warn!(%error, "not all folders are watched");
        }
    }

    /// Records which processes a change concerns.
    async fn note_changes(&mut self, changes: Vec<Change>) {
        let own = |path: &Path| path.strip_prefix(self.declared.root()).map(Path::to_owned).ok();
        let mut folders_changed = false;
        for change in &changes {
            let concerned = match change {
                Change::File(path) | Change::Folder(path) => {
                    own(path).map(|path| self.sources.concerned(&path)).unwrap_or_default()
                }
                Change::Unknown => self.sources.all(),
            };
            folders_changed |= !matches!(change, Change::File(_));
            note_concerned(&self.declared, &concerned);
        }
        if folders_changed {
            self.watch_folders().await;
        }
    }
}

/// Schedules restarts for when the files stop changing.
fn note_concerned(declared: &Declared, names: &[&str]) {
    let now = Instant::now();
    let mut state = declared.state();
    for name in names {
        let managed = state.managed.of(name);
        let first = managed.changed.map_or(now, |(_, first)| first);
        let at = (now + QUIET).min(first + LATEST);
        let not_before = managed.watch_restarts.not_before();
        managed.changed = Some((not_before.map_or(at, |not_before| at.max(not_before)), first));
    }
}

fn watching(folders: &[PathBuf]) -> io::Result<Folders> {
    let mut watched = Folders::new()?;
    watched.set(folders)?;
    Ok(watched)
}

/// Waits for changes; for ever if nothing is watched.
async fn changed(folders: &mut Option<Folders>) -> Vec<Change> {
    if let Some(watched) = folders {
        match watched.changed().await {
            Ok(changes) => return changes,
            Err(error) => tracing::error!(%error, "changes are not seen any more"),
        }
        *folders = None;
    }
    std::future::pending().await
}

/// Waits until the project file or the settings change.
async fn file_changed(place: &mut Option<Folders>, target: Option<&Path>, settings: Option<&Path>) {
    while !changed(place).await.iter().any(|change| is_read(change, target, settings)) {}
}

/// Whether a change is one of the project file or of the user's settings.
fn is_read(change: &Change, target: Option<&Path>, settings: Option<&Path>) -> bool {
    match change {
        Change::File(path) | Change::Folder(path) => {
            let path = path.as_path();
            path.ends_with(PROJECT_FILE) || Some(path) == target || Some(path) == settings
        }
        Change::Unknown => true,
    }
}

/// The folder of the user's settings, if it exists.
fn settings_folder(declared: &Declared) -> Option<PathBuf> {
    let folder = declared.settings.as_deref()?.parent()?;
    folder.is_dir().then(|| folder.to_owned())
}

/// What to do for a process.
enum Deed {
    Nothing,
    /// Start it; `restarts` counts the restarts in a row.
    Start {
        restarts: u32,
    },
    /// Stop it if it runs, and start it.
    Restart,
}

/// Does what is due for one process.
async fn look_after(declared: &Arc<Declared>, file: &ProjectFile, name: &str) {
    let Some(definition) = file.processes.get(name) else { return };
    let Some(process) = declared.declared_entry(name) else {
        // It was closed.
        return declared.state().managed.forget(name);
    };
    match process.status {
        Status::Running => begin_to_watch(declared, definition, name, &process),
        Status::Starting => return declared.state().managed.put_off(name, QUIET),
        _ => note_end(declared, definition, name, &process),
    }
    match deed(declared, file, name, &process) {
        Deed::Nothing => {}
        Deed::Start { restarts } => start(declared, definition, name, &process, restarts).await,
        // It may take as long as the process takes to end.
        Deed::Restart => drop(tokio::spawn(restart(declared.clone(), process))),
    }
}

/// Decides what is due for one process; it counts as done from here on.
fn deed(declared: &Declared, file: &ProjectFile, name: &str, process: &Process) -> Deed {
    let now = Instant::now();
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if let Some((_, first)) = managed.changed.filter(|(at, _)| *at <= now) {
        managed.changed = None;
        // A process that was stopped on request stays stopped.
        if !matches!(process.status, Status::Stopped | Status::Lost) {
            managed.watch_restarts.note(first, now);
            managed.again_at = None;
            return Deed::Restart;
        }
    }
    if process.status.is_alive() {
        (managed.wanted, managed.again_at) = (false, None);
        return Deed::Nothing;
    }
    if managed.again_at.is_some_and(|at| at <= now) {
        managed.again_at = None;
        let restarts =
            declared.panes.processes.get(&process.id).and_then(|process| process.declared);
        return Deed::Start { restarts: restarts.map_or(0, |declared| declared.restarts) };
    }
    if !managed.wanted {
        return Deed::Nothing;
    }
    match state.managed.may(name, file, |name| declared.declared_entry(name)) {
        May::Wait(_) => Deed::Nothing,
        May::Start => {
            let managed = state.managed.of(name);
            (managed.wanted, managed.again_at) = (false, None);
            Deed::Start { restarts: 0 }
        }
        May::Never(why) => {
            tracing::warn!(name, why, "a declared process is not started");
            let managed = state.managed.of(name);
            managed.wanted = false;
            managed.problem = Some(why);
            drop(state);
            declared.note_not_wanted();
            Deed::Nothing
        }
    }
}

/// Begins to wait until a new run is ready.
fn begin_to_watch(
    declared: &Arc<Declared>,
    definition: &Definition,
    name: &str,
    process: &Process,
) {
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if managed.awaited == process.runs {
        return;
    }
    managed.awaited = process.runs;
    managed.problem = None;
    match &definition.ready {
        None => {
            managed.ready = process.runs;
            drop(state);
            declared.notify();
        }
        Some(ready) => {
            let (declared, name) = (declared.clone(), name.to_owned());
            tokio::spawn(ready::watch(declared, name, process.clone(), ready.clone()));
        }
    }
}

/// Handles the end of a run, once, and decides what follows.
fn note_end(declared: &Arc<Declared>, definition: &Definition, name: &str, process: &Process) {
    let mut state = declared.state();
    let managed = state.managed.of(name);
    if managed.seen >= process.runs {
        return;
    }
    managed.seen = process.runs;
    let clean = process.exit.is_some_and(|exit| exit.code == Some(0));
    let exits = matches!(&definition.ready, Some(ready) if matches!(ready.when, ReadyWhen::Exits));
    if clean && process.status == Status::Exited && (exits || definition.ready.is_none()) {
        managed.ready = process.runs;
    }
    let lasted = process.ended_at.zip(process.started_at);
    let lasted = lasted.map_or(0, |(ended, started)| ended.saturating_sub(started));
    let end = End {
        status: process.status,
        exit: process.exit,
        lasted: Duration::from_millis(lasted),
        restarts: process.declared.as_ref().map_or(0, |declared| declared.restarts),
    };
    match next(&definition.restart, end) {
        Next::Rest => {}
        Next::GiveUp => {
            let limit = definition.restart.limit;
            tracing::warn!(name, limit, "a declared process failed too often");
            managed.problem = Some(format!(
                "it ended {} times in a row and is no longer restarted automatically; restart it \
                 when the cause is fixed",
                limit + 1
            ));
        }
        Next::Again { after, restarts } => {
            managed.again_at = Some(Instant::now() + after);
            drop(state);
            declared.panes.processes.note(&process.id, |process| {
                if let Some(declared) = &mut process.declared {
                    declared.restarts = restarts;
                }
            });
        }
    }
    declared.notify();
}

async fn start(
    declared: &Arc<Declared>,
    definition: &Definition,
    name: &str,
    process: &Process,
    restarts: u32,
) {
    let started = match declared.refresh_recipe(&process.id, definition, restarts) {
        Ok(_) => declared.panes.begin(&process.id, &[]).await,
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        tracing::warn!(name, %error, "a declared process could not be started");
        declared.state().managed.of(name).problem = Some(error.to_string());
    }
    declared.notify();
}

/// Stops a process if it runs, and starts it again.
async fn restart(declared: Arc<Declared>, process: Process) {
    if process.status.is_alive()
        && let Err(error) = declared.stop(&process, TERMINATE).await
    {
        tracing::warn!(id = %process.id, %error, "it could not be restarted");
    }
    if let Some(ended) = declared.panes.processes.get(&process.id)
        && let Err(error) = declared.start(&ended).await
    {
        tracing::warn!(id = %process.id, %error, "it could not be started again");
    }
    declared.notify();
}
