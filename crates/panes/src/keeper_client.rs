//! The server's dealings with the keeper: found when there is one, started when it is needed, and
//! replaced when it died.
//!
//! One request at a time. A request that the keeper did not answer in time has failed for its caller,
//! but the keeper may still carry it out, so the connection is given up and opened again, and both
//! sides' panes are compared: what the keeper holds and nobody here knows is ended, what it does not
//! hold any more is given to it. A keeper that lives is never replaced.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use patterm_keeper::{
    KeeperConnection, KeeperProcess, Pane, Program, REPLY_TIMEOUT, SpawnError, SpawnFault, Survivor,
};
use tokio::sync::{Notify, OwnedMutexGuard};

/// Between attempts to reach a keeper that lives but does not listen: it makes its socket again
/// within a quarter of a second.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(250);

/// How often a keeper is tried that closes its connections, before that counts as a fault.
const DYING_TRIES: u32 = 20;

/// How soon a keeper that could not be reached or replaced is tried again: what is in the way, such as a
/// lack of memory or of descriptors, may take a while to go.
const MEND_PAUSE: Duration = Duration::from_secs(1);

/// How long a keeper that is told to end may take to get to it: what it does at the moment is done
/// first.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Who keeps the panes of a project.
#[derive(Debug, Clone)]
pub struct KeeperClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: PathBuf,
    /// The patterm binary, to start a keeper with.
    program: PathBuf,
    /// The project's folder, in which a keeper starts the server again.
    root: PathBuf,
    /// How long the keeper may take for an answer.
    patience: Duration,
    /// Whoever holds this talks to the keeper. It may take as long as the keeper does, so nobody
    /// waits for it on a thread.
    keeper: Arc<tokio::sync::Mutex<Option<KeeperConnection>>>,
    /// The keeper's process.
    life: Mutex<Option<Arc<KeeperProcess>>>,
    /// The panes that are known here and wanted, by name.
    panes: Mutex<HashMap<String, Weak<Pane>>>,
    /// Notified when a connection to a keeper is closed.
    closed: Notify,
}

type Connection = OwnedMutexGuard<Option<KeeperConnection>>;

impl KeeperClient {
    /// A client that connects when it is needed. `program` is the patterm binary, to start a keeper with.
    pub fn new(socket: PathBuf, program: PathBuf, root: &Path) -> Self {
        Self::with_patience(socket, program, root, REPLY_TIMEOUT)
    }

    fn with_patience(socket: PathBuf, program: PathBuf, root: &Path, patience: Duration) -> Self {
        Self(Arc::new(Inner {
            socket,
            program,
            root: root.to_owned(),
            patience,
            keeper: Arc::default(),
            life: Mutex::default(),
            panes: Mutex::default(),
            closed: Notify::new(),
        }))
    }

    /// All panes of a keeper that an earlier server left, by name; none if there is no keeper. Called
    /// before anything else.
    pub fn recover(&self) -> io::Result<Vec<(String, Arc<Pane>)>> {
        let Ok(mut connection) = self.0.keeper.clone().try_lock_owned() else {
            return Ok(Vec::new());
        };
        let Some(mut found) = self.find()? else { return Ok(Vec::new()) };
        let panes = found.list()?.into_iter().map(|(name, pane)| (name, Arc::new(pane)));
        let panes: Vec<_> = panes.collect();
        for (name, pane) in &panes {
            self.panes().insert(name.clone(), Arc::downgrade(pane));
        }
        self.take(&mut connection, found);
        Ok(panes)
    }

    /// The keeper that listens; `None` if nobody does.
    fn find(&self) -> io::Result<Option<KeeperConnection>> {
        let mut tries = DYING_TRIES;
        loop {
            let error =
                match KeeperConnection::connect_with_timeout(&self.0.socket, Some(self.0.patience))
                {
                    Ok(found) => return Ok(Some(found)),
                    Err(error) => error,
                };
            match error.kind() {
                NotFound | ConnectionRefused => return Ok(None),
                // It ends at this moment.
                UnexpectedEof | ConnectionReset | BrokenPipe if tries > 0 => {
                    tries -= 1;
                    #[expect(clippy::disallowed_methods, reason = "its end is no event to us yet")]
                    std::thread::sleep(UNREACHABLE_PAUSE);
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether there is a keeper: after `recover`, whether an earlier server left one.
    pub fn is_kept(&self) -> bool {
        self.life().is_some()
    }

    /// The process that keeps the panes; everything that runs in one is below it.
    pub fn pid(&self) -> Option<i32> {
        self.life().as_ref().map(|life| life.pid())
    }

    /// The same, if it lives at this moment.
    pub(crate) fn live_pid(&self) -> Option<i32> {
        self.life().as_ref().filter(|life| !life.has_exited()).map(|life| life.pid())
    }

    /// Starts a program, in a terminal or with these as its input, output and errors.
    pub async fn spawn(
        &self,
        pane: String,
        program: Program,
        streams: Option<[OwnedFd; 3]>,
    ) -> Result<Arc<Pane>, SpawnError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let asked = self.with_keeper(move |keeping, connection| {
            let started = keeping.spawn_now(connection, &pane, &program, streams.as_ref());
            // Whoever asked may have gone away meanwhile.
            if let Err(Ok(_unwanted)) = answer.send(started) {
                keeping.panes().remove(&pane);
                let _ = keeping.forget_on(connection, &pane);
            }
        });
        asked.await.map_err(|error| system(&error))?;
        answered.await.unwrap_or_else(|error| Err(system(&error)))
    }

    fn spawn_now(
        &self,
        connection: &mut Connection,
        pane: &str,
        program: &Program,
        streams: Option<&[OwnedFd; 3]>,
    ) -> Result<Arc<Pane>, SpawnError> {
        let mut again = true;
        loop {
            let keeper = self.open(connection).map_err(|e| system(&e))?;
            let streams = streams.map(|[a, b, c]| [a.as_fd(), b.as_fd(), c.as_fd()]);
            let error = match keeper.spawn(pane, program, streams) {
                Ok(started) => {
                    let started = Arc::new(started);
                    self.panes().insert(pane.to_owned(), Arc::downgrade(&started));
                    return Ok(started);
                }
                Err(error) => error,
            };
            // A keeper that died took what it started with it: the next one is asked again.
            let died = !keeper.is_connected() && keeper.process().wait(Duration::ZERO);
            if !(again && died) {
                return Err(error);
            }
            again = false;
        }
    }

    /// Lets go of a pane; everything in it is ended. An error means that the keeper did not confirm
    /// it; it is told when its turn comes, or when the keeper answers again.
    pub async fn forget(&self, pane: String) -> io::Result<()> {
        // Whatever comes of it, the pane is not wanted any more.
        self.panes().remove(&pane);
        let keeping = self.clone();
        let (begin, begun) = tokio::sync::oneshot::channel();
        // A task of its own: the keeper is told even if the caller does not wait for it.
        let told = tokio::spawn(async move {
            let mut connection = keeping.0.keeper.clone().lock_owned().await;
            let _ = begin.send(());
            let work =
                tokio::task::spawn_blocking(move || keeping.forget_on(&mut connection, &pane));
            work.await.map_err(io::Error::other)?
        });
        if tokio::time::timeout(self.0.patience, begun).await.is_err() {
            return Err(self.silent());
        }
        told.await.map_err(io::Error::other)?
    }

    /// The same, on this thread; the keeper's answer is not needed.
    pub(crate) fn forget_now(&self, pane: &str) {
        self.panes().remove(pane);
        let Ok(mut connection) = self.0.keeper.clone().try_lock_owned() else { return };
        if let Err(error) = self.forget_on(&mut connection, pane) {
            tracing::error!(%error, pane, "the keeper does not let go of a pane");
        }
    }

    fn forget_on(&self, connection: &mut Connection, pane: &str) -> io::Result<()> {
        if connection.is_none() {
            return Ok(());
        }
        self.open(connection)?.forget(pane)
    }

    /// Resumes the keeper, should it be suspended: without it nothing can be ended.
    pub fn resume(&self) {
        if let Some(life) = self.life().as_ref() {
            life.resume();
        }
    }

    /// The server ends on purpose: so does the keeper, with everything it keeps. Returns what could
    /// not be ended, or why that is not known.
    pub async fn end(&self) -> io::Result<Vec<Survivor>> {
        let Some(life) = self.life().clone() else { return Ok(Vec::new()) };
        self.resume();
        let keeping = self.clone();
        let ended = async move {
            let mut connection = self.0.keeper.clone().lock_owned().await;
            tokio::task::spawn_blocking(move || {
                if connection.is_none() || life.has_exited() {
                    return Ok(Vec::new());
                }
                keeping.open(&mut connection)?.end()
            })
            .await
            .map_err(io::Error::other)?
        };
        match tokio::time::timeout(END_PATIENCE + patterm_keeper::END_TIMEOUT * 2, ended).await {
            Ok(ended) => ended,
            Err(_) => Err(self.silent()),
        }
    }

    /// Connects to the keeper again whenever the connection is lost, and replaces one that died.
    pub async fn watch(&self) {
        loop {
            self.0.closed.notified().await;
            while !self.mend().await {
                tokio::time::sleep(MEND_PAUSE).await;
            }
        }
    }

    /// Opens a connection that was closed again, and replaces a keeper that died: it is the other
    /// hand that holds what lives should this server die. Waits as long as a keeper lives and does
    /// not answer. `false` if there are panes and still no keeper for them.
    async fn mend(&self) -> bool {
        let mut connection = self.0.keeper.clone().lock_owned().await;
        if connection.as_ref().is_some_and(KeeperConnection::is_connected) {
            return true;
        }
        let keeping = self.clone();
        let (done, wait) = tokio::sync::oneshot::channel();
        // Not on a thread of the runtime's: one that ends waits for those.
        let work = move || {
            let dead = connection.as_ref().is_none_or(|keeper| keeper.process().has_exited());
            let reopened = match dead && keeping.wanted().is_empty() {
                true => {
                    keeping.let_go(&mut connection);
                    Ok(())
                }
                false => keeping.reopen(&mut connection, None),
            };
            if let Err(error) = &reopened {
                tracing::error!(%error, "the keeper cannot be reached or replaced now");
            }
            // Before the answer: who hears it may look.
            drop(connection);
            let _ = done.send(reopened.is_ok());
        };
        match std::thread::Builder::new().name("patterm-keeper".into()).spawn(work) {
            Ok(_) => wait.await.unwrap_or(false),
            Err(error) => {
                tracing::error!(%error, "no thread to reach the keeper on");
                false
            }
        }
    }

    /// Does something with the keeper on a thread that may wait, when it is this request's turn. A
    /// request whose turn does not come in time fails.
    async fn with_keeper<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Self, &mut Connection) -> T + Send + 'static,
    ) -> io::Result<T> {
        let turn = self.0.keeper.clone().lock_owned();
        let turn = tokio::time::timeout(self.0.patience, turn).await;
        let mut connection = turn.map_err(|_| self.silent())?;
        let keeping = self.clone();
        let work = tokio::task::spawn_blocking(move || ask(&keeping, &mut connection));
        work.await.map_err(io::Error::other)
    }

    /// The keeper, connected: the one that is there, or a new one where it died or there was none.
    fn open<'a>(&self, connection: &'a mut Connection) -> io::Result<&'a mut KeeperConnection> {
        if !connection.as_ref().is_some_and(KeeperConnection::is_connected) {
            self.reopen(connection, Some(self.0.patience))?;
        }
        connection.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Connects to the keeper again, or starts another if it died. `None` waits for one that lives.
    fn reopen(&self, connection: &mut Connection, patience: Option<Duration>) -> io::Result<()> {
        let life = connection.as_ref().map(|keeper| keeper.process().clone());
        let again = match &life {
            Some(life) => self.reconnect(life, patience)?,
            None => None,
        };
        let mut opened = match again {
            Some(again) => again,
            None => {
                if life.is_some() {
                    tracing::error!("the keeper died; starting another");
                }
                self.let_go(connection);
                let Inner { socket, program, root, .. } = &*self.0;
                match self.find()? {
                    Some(other) => other,
                    None => patterm_keeper::launch(program, socket, root)?,
                }
            }
        };
        opened.set_reply_timeout(self.0.patience);
        let compared = self.compare(&mut opened);
        if compared.is_ok() {
            tracing::info!(pid = opened.process().pid(), "this keeper keeps the panes");
        }
        // Kept in any case: it lives, and is not to be replaced.
        self.take(connection, opened);
        compared
    }

    /// Connects again to a keeper; `None` if it has ended.
    fn reconnect(
        &self,
        life: &KeeperProcess,
        patience: Option<Duration>,
    ) -> io::Result<Option<KeeperConnection>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        while !life.has_exited() {
            let error = match KeeperConnection::connect_with_timeout(&self.0.socket, patience) {
                Ok(again) => return Ok(Some(again)),
                Err(error) => error,
            };
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !life.wait(UNREACHABLE_PAUSE) && late {
                return Err(error);
            }
        }
        Ok(None)
    }

    /// Makes the keeper's panes those that are known here.
    fn compare(&self, keeper: &mut KeeperConnection) -> io::Result<()> {
        let mut wanted = self.wanted();
        for name in keeper.names()? {
            if wanted.remove(&name).is_none() {
                tracing::warn!(name, "a pane that nobody knows is ended");
                keeper.forget(&name)?;
            }
        }
        for (name, pane) in wanted {
            keeper.adopt(&name, &pane)?;
        }
        Ok(())
    }

    /// Talks to this keeper from now on, and notices when it lets go of the connection.
    fn take(&self, connection: &mut Connection, keeper: KeeperConnection) {
        *self.life() = Some(keeper.process().clone());
        let keeping = self.clone();
        let watching = keeper.until_closed().and_then(|until_closed| {
            let body = move || {
                until_closed();
                keeping.0.closed.notify_one();
            };
            std::thread::Builder::new().name("patterm-keeper".into()).spawn(body)
        });
        if let Err(error) = watching {
            tracing::error!(%error, "the keeper is not watched; its end is seen at the next start");
        }
        **connection = Some(keeper);
    }

    /// There is no keeper any more.
    fn let_go(&self, connection: &mut Connection) {
        **connection = None;
        *self.life() = None;
    }

    /// The panes that somebody here holds.
    fn wanted(&self) -> HashMap<String, Arc<Pane>> {
        let panes = self.panes();
        panes.iter().filter_map(|(name, pane)| Some((name.clone(), pane.upgrade()?))).collect()
    }

    /// What is said of a keeper that does not answer anybody.
    fn silent(&self) -> io::Error {
        let message = match self.pid() {
            Some(pid) => format!(
                "the keeper (pid {pid}) does not answer; if it is stopped, `kill -CONT {pid}` lets it \
                 go on"
            ),
            None => "the keeper does not answer".into(),
        };
        io::Error::new(io::ErrorKind::TimedOut, message)
    }

    fn panes(&self) -> MutexGuard<'_, HashMap<String, Weak<Pane>>> {
        self.0.panes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn life(&self) -> MutexGuard<'_, Option<Arc<KeeperProcess>>> {
        self.0.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system(error: &dyn std::error::Error) -> SpawnError {
    SpawnError { fault: SpawnFault::System, message: error.to_string() }
}

#[cfg(test)]
#[path = "keeper_client_tests.rs"]
mod tests;
