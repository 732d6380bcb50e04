//! Records the commits that programs in panes make. git writes a trace of each of its commands into the folder of the
//! run; when one changes, it is read, and the repository says what the command did. Programs can write anything into
//! these folders: the work is bounded, and there are pauses between its steps.

mod recording;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use patterm_git::Git;
use patterm_panes::process::Process;
use patterm_panes::{Panes, TracedRun};
use patterm_store::folders::{Change, Folders};
use patterm_wire::events::Actor;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::caller_origin::actor_in_pane;
use recording::{Pass, RunToRead};

/// The shortest pause between two passes: a command writes several lines.
const PAUSE: Duration = Duration::from_millis(20);

/// The pause after a pass, as a multiple of the time it took: programs that fill their folders get a fraction of a core.
const REST: u32 = 5;

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Records commits until the server ends.
pub(crate) struct GitRecorder {
    panes: Arc<Panes>,
    /// Watches the folders; `None` if the kernel has no instance of inotify left.
    folders: Option<Folders>,
    /// The runs that have a folder.
    runs: HashMap<TracedRun, KnownRun>,
    /// Something that outlives its program has ended.
    emptied: Arc<Notify>,
    /// What reads and records, while it does not.
    pass: Option<Pass>,
}

/// A run whose traces are read.
#[derive(Debug)]
struct KnownRun {
    actor: Actor,
    /// Its folder may contain something new.
    has_changed: bool,
    /// Nothing of it is running, so this is the last time that its folder is read.
    is_over: bool,
    /// Its folder is not worth reading until it is over.
    is_given_up: bool,
    /// Somebody waits until nothing of it is running.
    is_awaited: bool,
}

impl KnownRun {
    fn note_change(&mut self) {
        self.has_changed |= !self.is_given_up;
    }
}

impl GitRecorder {
    /// A recorder; it needs the runtime.
    pub(crate) fn new(panes: Arc<Panes>) -> Self {
        let folders = Folders::new().inspect_err(|error| {
            tracing::error!(%error, "commits are recorded only when a process has ended");
        });
        let git = Git::new(panes.environments.server());
        let pass = Pass::new(panes.events().clone(), git, panes.clock().wall_ms());
        Self {
            panes,
            folders: folders.ok(),
            runs: HashMap::new(),
            emptied: Arc::default(),
            pass: Some(pass),
        }
    }

    pub(crate) async fn run(mut self) {
        let mut changes = self.panes.processes.changes();
        loop {
            changes.borrow_and_update();
            self.find_runs();
            let pause = self.read_changed().await;
            sleep_until(Instant::now() + pause).await;
            if self.runs.values().any(|run| run.has_changed) {
                continue;
            }
            let Self { folders, emptied, .. } = &mut self;
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = emptied.notified() => {}
                changes = changed(folders) => self.note_changes(&changes),
            }
        }
    }

    /// Finds new runs, and those that are over.
    fn find_runs(&mut self) {
        let found: HashSet<TracedRun> = self.panes.git_traces.runs().into_iter().collect();
        let known = self.runs.len();
        self.runs.retain(|run, _| found.contains(run));
        let mut is_same = known == self.runs.len();
        for traced in found {
            let is_over = !self.panes.is_traced_run_alive(&traced);
            let known = self.runs.entry(traced.clone()).or_insert_with(|| {
                is_same = false;
                let process = self.panes.processes.get(&traced.id);
                let actor = |process: Process| actor_in_pane(&self.panes, &process);
                KnownRun {
                    actor: process.map(actor).unwrap_or_default(),
                    has_changed: true,
                    is_over: false,
                    is_given_up: false,
                    is_awaited: false,
                }
            });
            if is_over && !known.is_over {
                (known.is_over, known.has_changed) = (true, true);
            }
            if !is_over && !known.is_awaited {
                known.is_awaited = await_end(&self.panes, &traced, &self.emptied);
            }
        }
        if !is_same {
            self.watch();
        }
    }

    fn watch(&mut self) {
        let traces = &self.panes.git_traces;
        let paths: Vec<_> = self.runs.keys().map(|run| traces.of(run)).collect();
        if let Some(Err(error)) = self.folders.as_mut().map(|folders| folders.set(&paths)) {
            // A folder that was removed meanwhile, or too many watches.
            tracing::debug!(%error, "cannot watch a folder of git's traces");
        }
    }

    fn note_changes(&mut self, changes: &[Change]) {
        let mut folders = HashSet::new();
        for change in changes {
            match change {
                Change::File(path) | Change::Folder(path) => folders.extend(path.parent()),
                Change::Unknown => self.runs.values_mut().for_each(KnownRun::note_change),
            }
        }
        let traces = &self.panes.git_traces;
        for (traced, run) in &mut self.runs {
            if folders.contains(traces.of(traced).as_path()) {
                run.note_change();
            }
        }
    }

    /// Reads the folders that have changed; returns how long to pause.
    async fn read_changed(&mut self) -> Duration {
        let changed = self.runs.iter_mut().filter(|(_, run)| run.has_changed);
        let to_read: Vec<RunToRead> = changed
            .map(|(traced, run)| {
                run.has_changed = false;
                let offset = self.panes.run_of(&traced.id).filter(|run| run.number == traced.run);
                RunToRead {
                    traced: traced.clone(),
                    folder: self.panes.git_traces.of(traced),
                    actor: run.actor.clone(),
                    is_over: run.is_over,
                    offset: offset.map(|run| run.watch().borrow().parsed.get()),
                }
            })
            .collect();
        if to_read.is_empty() {
            return PAUSE;
        }
        let Some(mut pass) = self.pass.take() else { return LONGEST_PAUSE };
        let since = Instant::now();
        let done = tokio::task::spawn_blocking(move || {
            let read = pass.read(to_read);
            (pass, read)
        });
        let Ok((pass, read)) = done.await else { return LONGEST_PAUSE };
        self.pass = Some(pass);
        for outcome in read {
            if let Some(run) = self.runs.get_mut(&outcome.traced) {
                run.has_changed |= outcome.has_more;
                run.is_given_up |= outcome.is_given_up;
            }
        }
        (since.elapsed() * REST).clamp(PAUSE, LONGEST_PAUSE)
    }
}

/// Notifies when nothing of a run is running any more, if its program has ended; returns whether it has.
fn await_end(panes: &Panes, traced: &TracedRun, emptied: &Arc<Notify>) -> bool {
    let run = panes.run_of(&traced.id).filter(|run| run.number == traced.run);
    let Some(run) = run.filter(|run| run.watch().borrow().is_over()) else { return false };
    let (mut life, emptied) = (run.watch_life(), emptied.clone());
    drop(run);
    tokio::spawn(async move {
        let _ = life.wait_for(|progress| progress.empty).await;
        emptied.notify_one();
    });
    true
}

/// Waits for changes in watched folders.
async fn changed(folders: &mut Option<Folders>) -> Vec<Change> {
    match folders {
        Some(folders) => match folders.changed().await {
            Ok(changes) => changes,
            Err(error) => {
                tracing::error!(%error, "cannot watch the folders of git's traces");
                std::future::pending().await
            }
        },
        None => std::future::pending().await,
    }
}
