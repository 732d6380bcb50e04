//! The one task that runs declared processes: it sleeps until the project file changes, a process ends
//! or becomes ready, a watched file changes, or a restart is due.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::file_status::Declared;
use super::handle::{QUIET, handle_process};
use super::sources::Sources;
use patterm_store::folders::{Change, Folders};
use patterm_store::project::PROJECT_FILE;

/// How long after the first change, at the latest.
const LATEST: Duration = Duration::from_secs(2);

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
            // The kernel limits each user to a few hundred inotify instances.
            tracing::error!(%error, "cannot watch the project file; it is read only when needed");
        });
        declared.state().driven = true;
        declared.resume_pending();
        let (watched, sources) = (None, Arc::default());
        Self { declared, place: place.ok(), target: None, watched, sources, version: 0 }
    }

    /// Runs until the server ends.
    pub async fn run(mut self) {
        // It may have changed before it was watched.
        self.declared.read_project_file();
        loop {
            self.follow_link();
            self.follow_file().await;
            let file = self.declared.effect().unwrap_or_default();
            for name in file.in_order() {
                handle_process(&self.declared, &file, name).await;
            }
            self.declared.record_pending();
            self.declared.note_round();
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
        let is_elsewhere = |target: &PathBuf| *target != file && target.is_file();
        let target = file.canonicalize().ok().filter(is_elsewhere);
        if target == self.target {
            return;
        }
        let beside = target.as_ref().and_then(|target| target.parent()).map(Path::to_owned);
        let folders: Vec<_> = std::iter::once(root.to_owned())
            .chain(beside)
            .chain(settings_folder(&self.declared))
            .collect();
        if let Some(Err(error)) = self.place.as_mut().map(|place| place.set(&folders)) {
            tracing::warn!(%error, "cannot watch the target of the project file, which is a link");
        }
        self.target = target;
        // It may have changed before it was watched.
        self.declared.read_project_file();
    }

    /// Watches the files that the project file in effect names.
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
            tracing::warn!(%error, "cannot watch all folders that `watch` names");
        }
    }

    /// Records which processes are affected by a change.
    async fn note_changes(&mut self, changes: Vec<Change>) {
        let own = |path: &Path| path.strip_prefix(self.declared.root()).map(Path::to_owned).ok();
        let mut folders_changed = false;
        for change in &changes {
            let affected = match change {
                Change::File(path) | Change::Folder(path) => {
                    own(path).map(|path| self.sources.affected(&path)).unwrap_or_default()
                }
                Change::Unknown => self.sources.all(),
            };
            folders_changed |= !matches!(change, Change::File(_));
            schedule_restarts(&self.declared, &affected);
        }
        if folders_changed {
            self.watch_folders().await;
        }
    }
}

/// Schedules restarts for when the files stop changing.
fn schedule_restarts(declared: &Declared, names: &[&str]) {
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

/// Waits for changes; never returns if nothing is watched.
async fn changed(folders: &mut Option<Folders>) -> Vec<Change> {
    if let Some(watched) = folders {
        match watched.changed().await {
            Ok(changes) => return changes,
            Err(error) => tracing::error!(%error, "can no longer watch for changes"),
        }
        *folders = None;
    }
    std::future::pending().await
}

/// Waits until the project file or the settings change.
async fn file_changed(place: &mut Option<Folders>, target: Option<&Path>, settings: Option<&Path>) {
    while !changed(place).await.iter().any(|change| is_read(change, target, settings)) {}
}

/// Whether a change affects the project file or the user's settings.
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
