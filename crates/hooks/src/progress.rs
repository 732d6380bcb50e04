//! What each hook has done, and at which event it continues. It is stored, so that the next server repeats nothing and
//! skips nothing without counting it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use patterm_store::state::{self, StateDir, StateError};
use patterm_store::sync::lock;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::hook::{ActiveHook, HookId};

const FILE: &str = "hooks.json";
const VERSION: u32 = 1;

/// How often counts are stored if nothing was fired: they may be this much too old after a crash.
const SAVE_PAUSE: Duration = Duration::from_secs(1);

/// What became of a command that a server ran when it died.
const INTERRUPTED: &str = "patterm's server ended while it ran";

/// What a hook has done since it was added or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HookProgress {
    /// What the hook did then.
    pub(crate) fingerprint: String,
    /// The number of the first event that it has not handled.
    pub(crate) next: u64,
    /// Its command is running, for the event before.
    pub(crate) is_running: bool,
    pub(crate) failing: bool,
    pub(crate) fired: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_fired: Option<u64>,
    pub(crate) failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    pub(crate) suppressed: u64,
    pub(crate) dropped: u64,
    /// How many events wait.
    #[serde(skip)]
    pub(crate) waiting: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    hooks: Vec<StoredHook>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredHook {
    #[serde(flatten)]
    id: HookId,
    #[serde(flatten)]
    progress: HookProgress,
}

/// The progress of all hooks.
#[derive(Debug)]
pub(crate) struct ProgressTable {
    file: PathBuf,
    hooks: Mutex<BTreeMap<HookId, HookProgress>>,
    /// What the file contains; locked while it is written.
    stored: Mutex<BTreeMap<HookId, HookProgress>>,
    changed: Notify,
}

impl ProgressTable {
    /// Reads what earlier servers stored.
    pub(crate) fn load(state: &StateDir) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let stored: Stored = state::read(&file, VERSION)?.unwrap_or_default();
        let stored: BTreeMap<_, _> =
            stored.hooks.into_iter().map(|hook| (hook.id, hook.progress)).collect();
        let hooks = stored.clone().into_iter().map(|(id, progress)| (id, interrupted(progress)));
        let (hooks, stored) = (Mutex::new(hooks.collect()), Mutex::new(stored));
        Ok(Self { file, hooks, stored, changed: Notify::new() })
    }

    /// Adds a hook, which begins at this event, unless it is known already.
    pub(crate) fn add(&self, hook: &ActiveHook, next: u64) {
        let (id, fingerprint) = (hook.id(), hook.fingerprint());
        let mut hooks = lock(&self.hooks);
        match hooks.get_mut(&id).filter(|known| known.fingerprint == fingerprint) {
            // In a log that was begun anew, the numbers are lower.
            Some(known) => known.next = known.next.min(next),
            None => {
                hooks.insert(id, HookProgress { fingerprint, next, ..HookProgress::default() });
            }
        }
        drop(hooks);
        self.changed.notify_one();
    }

    /// Removes all hooks but some.
    pub(crate) fn retain(&self, is_kept: impl Fn(&HookId) -> bool) {
        let mut hooks = lock(&self.hooks);
        let before = hooks.len();
        hooks.retain(|id, _| is_kept(id));
        if hooks.len() != before {
            self.changed.notify_one();
        }
    }

    /// The progress of a hook.
    pub(crate) fn of(&self, id: &HookId) -> HookProgress {
        lock(&self.hooks).get(id).cloned().unwrap_or_default()
    }

    /// Changes the progress of a hook, unless the hook has changed. It is stored soon.
    pub(crate) fn update<T>(
        &self,
        id: &HookId,
        fingerprint: &str,
        change: impl FnOnce(&mut HookProgress) -> T,
    ) -> Option<T> {
        let mut hooks = lock(&self.hooks);
        let progress = hooks.get_mut(id).filter(|known| known.fingerprint == fingerprint)?;
        let before = progress.clone();
        let result = change(progress);
        if *progress != before {
            self.changed.notify_one();
        }
        Some(result)
    }

    /// Stores everything; it is on the disk when this returns. A failure costs at most a repetition after a crash.
    pub(crate) fn save(&self) {
        let mut stored = lock(&self.stored);
        let hooks = lock(&self.hooks).clone();
        if *stored == hooks {
            return;
        }
        let list = hooks.clone().into_iter().map(|(id, progress)| StoredHook { id, progress });
        match state::write_reserved(&self.file, VERSION, &Stored { hooks: list.collect() }) {
            Ok(()) => *stored = hooks,
            Err(error) => tracing::error!(%error, "cannot store what hooks have done"),
        }
    }

    /// Stores changes soon after they happen.
    pub(crate) async fn keep_saving(self: Arc<Self>) {
        loop {
            self.changed.notified().await;
            let table = self.clone();
            let _ = tokio::task::spawn_blocking(move || table.save()).await;
            tokio::time::sleep(SAVE_PAUSE).await;
        }
    }
}

/// A command that ran when the server died is not run again.
fn interrupted(mut progress: HookProgress) -> HookProgress {
    if std::mem::take(&mut progress.is_running) {
        progress.failures += 1;
        progress.failing = true;
        progress.last_error = Some(INTERRUPTED.to_owned());
    }
    progress
}

#[cfg(test)]
mod tests {
    use patterm_project::project_file::ProjectFile;
    use patterm_wire::hooks::HookFile;

    use super::*;

    fn hook(program: &str) -> ActiveHook {
        let text = format!("[[hooks]]\nname = 'h'\non = ['agent.idle']\nrun = ['{program}']");
        let mut hooks = ProjectFile::parse(&text).unwrap().hooks;
        ActiveHook { file: HookFile::Project, definition: hooks.remove(0) }
    }

    #[test]
    fn progress_is_stored_until_the_hook_changes() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let (first, changed) = (hook("a"), hook("b"));
        let table = ProgressTable::load(&state).unwrap();
        table.add(&first, 7);
        let fingerprint = first.fingerprint();
        table.update(&first.id(), &fingerprint, |progress| {
            (progress.next, progress.is_running) = (9, true)
        });
        table.save();
        let table = ProgressTable::load(&state).unwrap();
        table.add(&first, 100);
        let progress = table.of(&first.id());
        assert_eq!((progress.next, progress.failures, progress.is_running), (9, 1, false));
        assert_eq!(progress.last_error.as_deref(), Some(INTERRUPTED));
        table.add(&changed, 100);
        assert_eq!((table.of(&first.id()).next, table.of(&first.id()).failures), (100, 0));
        let late = table.update(&first.id(), &fingerprint, |progress| progress.next = 3);
        assert_eq!((late, table.of(&first.id()).next), (None, 100), "of the hook before");
        table.add(&changed, 50);
        assert_eq!(table.of(&first.id()).next, 50, "the log begins anew");
        table.retain(|_| false);
        table.save();
        assert_eq!(ProgressTable::load(&state).unwrap().of(&first.id()), HookProgress::default());
    }
}
