//! The one task that looks after declared processes: it sleeps until the file changes, one of them
//! ends or becomes ready, a file that they watch changes, or the time has come to start one again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::folders::{Change, Folders};
use super::policy::{End, Next, next};
use super::ready;
use super::sources::Sources;
use super::wards::May;
use crate::host::Host;
use crate::process::{Process, Status};
use crate::project_file::{Definition, ProjectFile, ReadyWhen};
use patterm_store::project::PROJECT_FILE;

/// Files are written one after the other: how long after the last of them a process is restarted.
const QUIET: Duration = Duration::from_millis(200);

/// How long after the first of them, at the latest.
const LATEST: Duration = Duration::from_secs(2);

/// The signal with which a process is asked to end before it is started again.
const TERMINATE: i32 = 15;

/// Looks after the declared processes of a host.
pub(crate) struct Driver {
    host: Arc<Host>,
    /// Where the project file lies.
    place: Option<Folders>,
    /// Where it lies itself, where a link stands in its place.
    target: Option<PathBuf>,
    /// Where the files lie that processes watch.
    watched: Option<Folders>,
    sources: Arc<Sources>,
    /// What of the file was last taken notice of.
    version: u64,
}

impl Driver {
    /// One that will run; it needs the runtime.
    pub(crate) fn new(host: Arc<Host>) -> Self {
        let settings = settings_folder(&host);
        let folders: Vec<_> =
            std::iter::once(host.project.root().to_owned()).chain(settings).collect();
        let place = watching(&folders);
        let place = place.inspect_err(|error| {
            // The kernel gives each user some hundred ways to watch.
            tracing::error!(%error, "changes of the project file are seen when it is asked for");
        });
        let (watched, sources) = (None, Arc::default());
        Self { host, place: place.ok(), target: None, watched, sources, version: 0 }
    }

    /// Looks after them, for ever.
    pub(crate) async fn run(mut self) {
        // What changed before anybody watched.
        self.host.read_project_file();
        loop {
            self.follow_link();
            self.follow_file().await;
            let file = self.host.declared.effect().unwrap_or_default();
            for name in file.in_order() {
                look_after(&self.host, &file, name).await;
            }
            let wake = self.host.declared.state().wards.next_at();
            let Self { host, place, target, watched, .. } = &mut self;
            tokio::select! {
                () = host.declared.bell.notified() => {}
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = file_changed(place, target.as_deref(), host.settings.as_deref()) => {
                    host.read_project_file();
                    host.configure_shared();
                }
                changes = changed(watched) => self.note_changes(changes).await,
            }
        }
    }

    /// A link may stand in the file's place: then what it leads to is watched too.
    fn follow_link(&mut self) {
        let root = self.host.project.root();
        let file = root.join(PROJECT_FILE);
        let elsewhere = |target: &PathBuf| *target != file && target.is_file();
        let target = file.canonicalize().ok().filter(elsewhere);
        if target == self.target {
            return;
        }
        let beside = target.as_ref().and_then(|target| target.parent()).map(Path::to_owned);
        let folders: Vec<_> = std::iter::once(root.to_owned())
            .chain(beside)
            .chain(settings_folder(&self.host))
            .collect();
        if let Some(Err(error)) = self.place.as_mut().map(|place| place.set(&folders)) {
            tracing::warn!(%error, "what the project file links to is not watched");
        }
        self.target = target;
        // What changed before it was watched.
        self.host.read_project_file();
    }

    /// Watches what the file now in effect says is to be watched.
    async fn follow_file(&mut self) {
        let (version, file) = {
            let state = self.host.declared.state();
            (state.version, state.effect.clone())
        };
        if version == self.version {
            return;
        }
        self.version = version;
        self.host.configure_shared();
        self.sources = Arc::new(file.map(|file| Sources::of(&file)).unwrap_or_default());
        self.watch_folders().await;
    }

    async fn watch_folders(&mut self) {
        if self.sources.is_empty() {
            self.watched = None;
            return;
        }
        let (sources, root) = (self.sources.clone(), self.host.project.root().to_owned());
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

    /// Notes whom changes concern.
    async fn note_changes(&mut self, changes: Vec<Change>) {
        let own =
            |path: &Path| path.strip_prefix(self.host.project.root()).map(Path::to_owned).ok();
        let mut folders_changed = false;
        for change in &changes {
            let concerned = match change {
                Change::File(path) | Change::Folder(path) => {
                    own(path).map(|path| self.sources.concerned(&path)).unwrap_or_default()
                }
                Change::Unknown => self.sources.all(),
            };
            folders_changed |= !matches!(change, Change::File(_));
            note_concerned(&self.host, &concerned);
        }
        if folders_changed {
            self.watch_folders().await;
        }
    }
}

/// Has processes restarted once their files come to rest.
fn note_concerned(host: &Host, names: &[&str]) {
    let now = Instant::now();
    let mut state = host.declared.state();
    for name in names {
        let ward = state.wards.of(name);
        let first = ward.changed.map_or(now, |(_, first)| first);
        let at = (now + QUIET).min(first + LATEST);
        let not_before = ward.watch_restarts.not_before();
        ward.changed = Some((not_before.map_or(at, |not_before| at.max(not_before)), first));
    }
}

fn watching(folders: &[PathBuf]) -> io::Result<Folders> {
    let mut watched = Folders::new()?;
    watched.set(folders)?;
    Ok(watched)
}

/// Waits until something changed; for ever where nothing is watched.
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

/// Waits until the project file changed.
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

/// Where the user's settings lie, if there is such a folder.
fn settings_folder(host: &Host) -> Option<PathBuf> {
    let folder = host.settings.as_deref()?.parent()?;
    folder.is_dir().then(|| folder.to_owned())
}

/// What is to be done for a process.
enum Deed {
    Nothing,
    /// It is started, for the so manieth time in a row.
    Start {
        restarts: u32,
    },
    /// It is ended if it runs, and started.
    Restart,
}

/// Does what is to be done for one process now.
async fn look_after(host: &Arc<Host>, file: &ProjectFile, name: &str) {
    let Some(definition) = file.processes.get(name) else { return };
    let Some(process) = host.declared_entry(name) else {
        // It was closed.
        return host.declared.state().wards.forget(name);
    };
    match process.status {
        Status::Running => begin_to_watch(host, definition, name, &process),
        Status::Starting => return host.declared.state().wards.put_off(name, QUIET),
        _ => note_end(host, definition, name, &process),
    }
    match deed(host, file, name, &process) {
        Deed::Nothing => {}
        Deed::Start { restarts } => start(host, definition, name, &process, restarts).await,
        // It may take as long as the process takes to end.
        Deed::Restart => drop(tokio::spawn(restart(host.clone(), process))),
    }
}

/// What is to be done for one process now; it counts as done from here on.
fn deed(host: &Host, file: &ProjectFile, name: &str, process: &Process) -> Deed {
    let now = Instant::now();
    let mut state = host.declared.state();
    let ward = state.wards.of(name);
    if let Some((_, first)) = ward.changed.filter(|(at, _)| *at <= now) {
        ward.changed = None;
        // One that was stopped on request stays so.
        if !matches!(process.status, Status::Stopped | Status::Lost) {
            ward.watch_restarts.note(first, now);
            ward.again_at = None;
            return Deed::Restart;
        }
    }
    if process.status.is_alive() {
        (ward.wanted, ward.again_at) = (false, None);
        return Deed::Nothing;
    }
    if ward.again_at.is_some_and(|at| at <= now) {
        ward.again_at = None;
        let restarts = host.processes.get(&process.id).and_then(|process| process.declared);
        return Deed::Start { restarts: restarts.map_or(0, |declared| declared.restarts) };
    }
    if !ward.wanted {
        return Deed::Nothing;
    }
    match state.wards.may(name, file, |name| host.declared_entry(name)) {
        May::Wait(_) => Deed::Nothing,
        May::Start => {
            let ward = state.wards.of(name);
            (ward.wanted, ward.again_at) = (false, None);
            Deed::Start { restarts: 0 }
        }
        May::Never(why) => {
            tracing::warn!(name, why, "a declared process is not started");
            let ward = state.wards.of(name);
            ward.wanted = false;
            ward.problem = Some(why);
            drop(state);
            host.note_not_wanted();
            Deed::Nothing
        }
    }
}

/// Begins to wait until a life that is new is ready.
fn begin_to_watch(host: &Arc<Host>, definition: &Definition, name: &str, process: &Process) {
    let mut state = host.declared.state();
    let ward = state.wards.of(name);
    if ward.awaited == process.runs {
        return;
    }
    ward.awaited = process.runs;
    ward.problem = None;
    match &definition.ready {
        None => {
            ward.ready = process.runs;
            drop(state);
            host.declared.ring();
        }
        Some(ready) => {
            let (host, name) = (host.clone(), name.to_owned());
            tokio::spawn(ready::watch(host, name, process.clone(), ready.clone()));
        }
    }
}

/// Takes notice of an end, once, and decides what follows.
fn note_end(host: &Arc<Host>, definition: &Definition, name: &str, process: &Process) {
    let mut state = host.declared.state();
    let ward = state.wards.of(name);
    if ward.seen >= process.runs {
        return;
    }
    ward.seen = process.runs;
    let clean = process.exit.is_some_and(|exit| exit.code == Some(0));
    let exits = matches!(&definition.ready, Some(ready) if matches!(ready.when, ReadyWhen::Exits));
    if clean && process.status == Status::Exited && (exits || definition.ready.is_none()) {
        ward.ready = process.runs;
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
            ward.problem = Some(format!(
                "it ended {} times in a row and is no longer restarted automatically; restart it \
                 when the cause is fixed",
                limit + 1
            ));
        }
        Next::Again { after, restarts } => {
            ward.again_at = Some(Instant::now() + after);
            drop(state);
            host.processes.note(&process.id, |process| {
                if let Some(declared) = &mut process.declared {
                    declared.restarts = restarts;
                }
            });
        }
    }
    host.declared.ring();
}

async fn start(
    host: &Arc<Host>,
    definition: &Definition,
    name: &str,
    process: &Process,
    restarts: u32,
) {
    let started = match host.refresh_recipe(&process.id, definition, restarts) {
        Ok(_) => host.begin(&process.id, &[]).await,
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        tracing::warn!(name, error = error.message, "a declared process could not be started");
        host.declared.state().wards.of(name).problem = Some(error.message);
    }
    host.declared.ring();
}

/// Ends a process if it runs, and starts it again.
async fn restart(host: Arc<Host>, process: Process) {
    if process.status.is_alive()
        && let Err(error) = host.stop(&process, TERMINATE).await
    {
        tracing::warn!(id = %process.id, error = error.message, "it could not be restarted");
    }
    if let Some(ended) = host.processes.get(&process.id)
        && let Err(error) = host.start(&ended).await
    {
        tracing::warn!(id = %process.id, error = error.message, "it could not be started again");
    }
    host.declared.ring();
}
