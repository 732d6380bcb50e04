//! The server's dealings with the keeper: found when there is one, started when it is needed, and
//! replaced when it dies.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use patterm_keeper::{Keeper, Pane, Program, SpawnError, SpawnFault};
use tokio::sync::Notify;

use crate::plane::Live;

/// Who keeps the panes of a project.
#[derive(Debug, Clone)]
pub(crate) struct Keeping(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: PathBuf,
    /// The patterm binary, to start a keeper with.
    program: PathBuf,
    /// The project's folder, in which a keeper starts the server again.
    root: PathBuf,
    keeper: Mutex<Option<Keeper>>,
    /// Rung when a keeper is gone.
    gone: Notify,
}

impl Keeping {
    pub(crate) fn new(socket: PathBuf, program: PathBuf, root: &Path) -> Self {
        let root = root.to_owned();
        let (keeper, gone) = (Mutex::new(None), Notify::new());
        Self(Arc::new(Inner { socket, program, root, keeper, gone }))
    }

    /// All panes of a keeper that an earlier server left, by name; none if there is no keeper.
    pub(crate) fn recover(&self) -> Vec<(String, Pane)> {
        let mut keeper = self.lock();
        let Ok(mut found) = Keeper::connect(&self.0.socket) else { return Vec::new() };
        match found.list() {
            Ok(panes) => {
                self.watch(&found);
                *keeper = Some(found);
                panes
            }
            Err(error) => {
                tracing::error!(%error, "the keeper does not hand over its panes");
                Vec::new()
            }
        }
    }

    /// Whether there is a keeper: after `recover`, whether an earlier server left one.
    pub(crate) fn is_kept(&self) -> bool {
        self.lock().is_some()
    }

    /// The process that keeps the panes; everything that runs in one is below it.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.lock().as_ref().map(Keeper::pid)
    }

    /// Starts a program. `lives` are handed to a new keeper where the old one died.
    pub(crate) async fn spawn(
        &self,
        pane: String,
        program: Program,
        lives: Vec<(String, Arc<Live>)>,
    ) -> Result<Pane, SpawnError> {
        let keeping = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            keeping.with_keeper(&lives, |keeper| keeper.spawn(&pane, &program, None))
        });
        work.await.unwrap_or_else(|e| Err(system(&e)))
    }

    /// Starts a program with these as its input, output and errors, on this thread.
    pub(crate) fn spawn_with(
        &self,
        pane: &str,
        program: &Program,
        streams: [BorrowedFd<'_>; 3],
        lives: &[(String, Arc<Live>)],
    ) -> Result<Pane, SpawnError> {
        self.with_keeper(lives, |keeper| keeper.spawn(pane, program, Some(streams)))
    }

    /// Lets go of a pane; everything in it is ended.
    pub(crate) async fn forget(&self, pane: String) {
        let keeping = self.clone();
        let _ = tokio::task::spawn_blocking(move || keeping.forget_now(&pane)).await;
    }

    /// The same, on this thread.
    pub(crate) fn forget_now(&self, pane: &str) {
        if let Some(keeper) = self.lock().as_mut()
            && let Err(error) = keeper.forget(pane)
        {
            tracing::error!(%error, pane, "the keeper does not let go of a pane");
        }
    }

    /// The server ends on purpose: so does the keeper, with everything it keeps.
    pub(crate) fn end(&self) {
        if let Some(keeper) = self.lock().as_mut() {
            let _ = keeper.end();
        }
    }

    /// Waits until a keeper is gone.
    pub(crate) async fn gone(&self) {
        self.0.gone.notified().await;
    }

    /// Gives what lives to a new keeper, if the old one died: it is the other hand that holds it
    /// should this server die.
    pub(crate) async fn replace(&self, lives: Vec<(String, Arc<Live>)>) {
        let keeping = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut keeper = keeping.lock();
            if keeper.as_ref().is_none_or(Keeper::is_alive) {
                return;
            }
            *keeper = None;
            if lives.is_empty() {
                return;
            }
            tracing::error!(panes = lives.len(), "the keeper died; starting another");
            match keeping.launch(&lives) {
                Ok(new) => *keeper = Some(new),
                Err(error) => tracing::error!(%error, "the keeper cannot be replaced now"),
            }
        });
        let _ = work.await;
    }

    /// Has the bell rung when this keeper is gone.
    fn watch(&self, keeper: &Keeper) {
        let keeping = self.clone();
        let watching = keeper.until_gone().and_then(|until_gone| {
            let body = move || {
                until_gone();
                keeping.0.gone.notify_one();
            };
            std::thread::Builder::new().name("patterm-keeper".into()).spawn(body)
        });
        if let Err(error) = watching {
            tracing::error!(%error, "the keeper is not watched; its end is seen at the next start");
        }
    }

    /// Asks the keeper; one that died is replaced, and asked again.
    fn with_keeper(
        &self,
        lives: &[(String, Arc<Live>)],
        ask: impl Fn(&mut Keeper) -> Result<Pane, SpawnError>,
    ) -> Result<Pane, SpawnError> {
        let mut keeper = self.lock();
        if let Some(old) = keeper.as_mut() {
            match ask(old) {
                Err(error) if error.fault == SpawnFault::System && !old.is_alive() => {
                    tracing::error!(%error, "the keeper died; starting another");
                }
                answer => return answer,
            }
        }
        let mut new = self.launch(lives).map_err(|e| system(&e))?;
        let answer = ask(&mut new);
        *keeper = Some(new);
        answer
    }

    fn launch(&self, lives: &[(String, Arc<Live>)]) -> io::Result<Keeper> {
        let Inner { socket, program, root, .. } = &*self.0;
        let mut keeper = patterm_keeper::launch(program, socket, root)?;
        for (name, live) in lives {
            if let Some(pane) = &live.pane {
                keeper.adopt(name, pane)?;
            }
        }
        self.watch(&keeper);
        Ok(keeper)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Keeper>> {
        self.0.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system(error: &dyn std::error::Error) -> SpawnError {
    SpawnError { fault: SpawnFault::System, message: format!("cannot reach the keeper: {error}") }
}
