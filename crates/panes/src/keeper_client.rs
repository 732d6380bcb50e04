//! The server's connection to the keeper, which is found if there is one, started when it is needed, and replaced
//! when it dies.
//!
//! There is one request at a time. A request without an answer in time fails for its caller, but the keeper may still
//! carry it out. So the connection is closed and opened again, and the panes of both sides are compared: panes that
//! only the keeper has are ended, panes that only the server has are handed to the keeper. A keeper that is alive is
//! never replaced.

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

/// The pause between attempts to reach a keeper that is alive but does not listen: it creates its socket again within
/// a quarter of a second.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(250);

/// How often a keeper that closes its connections is tried before that counts as an error.
const DYING_TRIES: u32 = 20;

/// How soon a keeper that could not be reached or replaced is tried again: a lack of memory or descriptors may last
/// for a while.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// How long a keeper may take to begin to end: it finishes its current request first.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// The connection to the keeper of a project.
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
    /// Held during a request. A request may take long, so it is awaited and never blocks a thread.
    keeper: Arc<tokio::sync::Mutex<Option<KeeperConnection>>>,
    /// The keeper's process.
    process: Mutex<Option<Arc<KeeperProcess>>>,
    /// The panes that this server uses, by name.
    panes: Mutex<HashMap<String, Weak<Pane>>>,
    /// Notified when a connection to a keeper is closed.
    closed: Notify,
}

type Connection = OwnedMutexGuard<Option<KeeperConnection>>;

impl KeeperClient {
    /// A client that connects when it is needed. `program` is the patterm binary, which also is the keeper.
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
            process: Mutex::default(),
            panes: Mutex::default(),
            closed: Notify::new(),
        }))
    }

    /// All panes of a keeper that an earlier server left, by name; none if there is no keeper. Must be called before
    /// anything else.
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
        self.adopt(&mut connection, found);
        Ok(panes)
    }

    /// Connects to the keeper that listens on the socket; `None` if there is none.
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
                // It is about to end.
                UnexpectedEof | ConnectionReset | BrokenPipe if tries > 0 => {
                    tries -= 1;
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "there is nothing to wait on before a connection exists"
                    )]
                    std::thread::sleep(UNREACHABLE_PAUSE);
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether there is a keeper: after `recover`, whether an earlier server left one.
    pub fn is_kept(&self) -> bool {
        self.process().is_some()
    }

    /// The keeper's process; everything in a pane is below it.
    pub fn pid(&self) -> Option<i32> {
        self.process().as_ref().map(|process| process.pid())
    }

    /// The keeper's process, if it is alive.
    pub(crate) fn live_pid(&self) -> Option<i32> {
        self.process().as_ref().filter(|process| !process.has_exited()).map(|process| process.pid())
    }

    /// Starts a program in a terminal, or with `streams` as its standard input, output and error.
    pub async fn spawn(
        &self,
        pane: String,
        program: Program,
        streams: Option<[OwnedFd; 3]>,
    ) -> Result<Arc<Pane>, SpawnError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let asked = self.with_keeper(move |client, connection| {
            let started = client.spawn_now(connection, &pane, &program, streams.as_ref());
            let client = client.clone();
            let unclaimed =
                |started| UnclaimedPane { client, name: pane, pane: started, claimed: false };
            let _ = answer.send(started.map(unclaimed));
        });
        asked.await.map_err(|error| system(&error))?;
        let started = answered.await.unwrap_or_else(|error| Err(system(&error)));
        started.map(UnclaimedPane::claim)
    }

    fn spawn_now(
        &self,
        connection: &mut Connection,
        pane: &str,
        program: &Program,
        streams: Option<&[OwnedFd; 3]>,
    ) -> Result<Arc<Pane>, SpawnError> {
        let mut may_retry = true;
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
            // A keeper that died has taken the program with it: the next one gets the request again.
            let died = !keeper.is_connected() && keeper.process().wait(Duration::ZERO);
            if !(may_retry && died) {
                return Err(error);
            }
            may_retry = false;
        }
    }

    /// Has the keeper end everything in a pane and release it. An error means that the keeper has not confirmed this;
    /// it gets the request when it answers again.
    pub async fn forget(&self, pane: String) -> io::Result<()> {
        // Even if the request fails, this server no longer uses the pane.
        self.panes().remove(&pane);
        let client = self.clone();
        let (begin, begun) = tokio::sync::oneshot::channel();
        // A separate task, so that the keeper gets the request even if the caller is cancelled.
        let forgotten = tokio::spawn(async move {
            let mut connection = client.0.keeper.clone().lock_owned().await;
            let _ = begin.send(());
            let work =
                tokio::task::spawn_blocking(move || client.forget_on(&mut connection, &pane));
            work.await.map_err(io::Error::other)?
        });
        if tokio::time::timeout(self.0.patience, begun).await.is_err() {
            return Err(self.no_answer());
        }
        forgotten.await.map_err(io::Error::other)?
    }

    /// Like `forget`, but on this thread and without waiting for a request in progress.
    pub(crate) fn forget_now(&self, pane: &str) {
        self.panes().remove(pane);
        let Ok(mut connection) = self.0.keeper.clone().try_lock_owned() else { return };
        if let Err(error) = self.forget_on(&mut connection, pane) {
            tracing::error!(%error, pane, "the keeper did not release a pane");
        }
    }

    fn forget_on(&self, connection: &mut Connection, pane: &str) -> io::Result<()> {
        if connection.is_none() {
            return Ok(());
        }
        self.open(connection)?.forget(pane)
    }

    /// Resumes the keeper if it is suspended: nothing can be ended without it.
    pub fn resume(&self) {
        if let Some(process) = self.process().as_ref() {
            process.resume();
        }
    }

    /// Ends the keeper with everything in its panes, because the server ends on purpose. Returns the processes that
    /// could not be ended.
    pub async fn end(&self) -> io::Result<Vec<Survivor>> {
        let Some(process) = self.process().clone() else { return Ok(Vec::new()) };
        self.resume();
        let client = self.clone();
        let ended = async move {
            let mut connection = self.0.keeper.clone().lock_owned().await;
            tokio::task::spawn_blocking(move || {
                if connection.is_none() || process.has_exited() {
                    return Ok(Vec::new());
                }
                client.open(&mut connection)?.end()
            })
            .await
            .map_err(io::Error::other)?
        };
        match tokio::time::timeout(END_PATIENCE + patterm_keeper::END_TIMEOUT * 2, ended).await {
            Ok(ended) => ended,
            Err(_) => Err(self.no_answer()),
        }
    }

    /// Connects to the keeper again whenever the connection is lost, and replaces one that died.
    pub async fn watch(&self) {
        loop {
            self.0.closed.notified().await;
            while !self.restore().await {
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
        }
    }

    /// Reconnects to the keeper, or replaces it if it died, so that the panes survive this server. Waits as long as a
    /// keeper is alive and does not answer. `false` if there are panes but no keeper for them.
    async fn restore(&self) -> bool {
        let mut connection = self.0.keeper.clone().lock_owned().await;
        if connection.as_ref().is_some_and(KeeperConnection::is_connected) {
            return true;
        }
        let client = self.clone();
        let (done, wait) = tokio::sync::oneshot::channel();
        // Not on a thread of the runtime, which waits for its threads when it shuts down.
        let work = move || {
            let dead = connection.as_ref().is_none_or(|keeper| keeper.process().has_exited());
            let reopened = match dead && client.wanted().is_empty() {
                true => {
                    client.disconnect(&mut connection);
                    Ok(())
                }
                false => client.reopen(&mut connection, None),
            };
            if let Err(error) = &reopened {
                tracing::error!(%error, "cannot reach or replace the keeper; trying again");
            }
            // Before the answer, so that the caller can use the connection.
            drop(connection);
            let _ = done.send(reopened.is_ok());
        };
        match std::thread::Builder::new().name("patterm-keeper".into()).spawn(work) {
            Ok(_) => wait.await.unwrap_or(false),
            Err(error) => {
                tracing::error!(%error, "cannot start a thread to reconnect to the keeper");
                false
            }
        }
    }

    /// Runs a request on a thread that may block, when it is its turn. A request whose turn does not come in time
    /// fails.
    async fn with_keeper<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Self, &mut Connection) -> T + Send + 'static,
    ) -> io::Result<T> {
        let turn = self.0.keeper.clone().lock_owned();
        let turn = tokio::time::timeout(self.0.patience, turn).await;
        let mut connection = turn.map_err(|_| self.no_answer())?;
        let client = self.clone();
        let work = tokio::task::spawn_blocking(move || ask(&client, &mut connection));
        work.await.map_err(io::Error::other)
    }

    /// The connected keeper: the current one, or a new one if it died or there was none.
    fn open<'a>(&self, connection: &'a mut Connection) -> io::Result<&'a mut KeeperConnection> {
        if !connection.as_ref().is_some_and(KeeperConnection::is_connected) {
            self.reopen(connection, Some(self.0.patience))?;
        }
        connection.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Reconnects to the keeper, or starts another if it died. Without `patience` it waits for a living keeper as long
    /// as it takes.
    fn reopen(&self, connection: &mut Connection, patience: Option<Duration>) -> io::Result<()> {
        let process = connection.as_ref().map(|keeper| keeper.process().clone());
        let again = match &process {
            Some(process) => self.reconnect(process, patience)?,
            None => None,
        };
        let mut opened = match again {
            Some(again) => again,
            None => {
                if process.is_some() {
                    tracing::error!("the keeper died; starting another one");
                }
                self.disconnect(connection);
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
            tracing::info!(pid = opened.process().pid(), "connected to the keeper");
        }
        // Even if the comparison failed: this keeper is alive and must not be replaced.
        self.adopt(connection, opened);
        compared
    }

    /// Reconnects to a keeper; `None` if it has ended.
    fn reconnect(
        &self,
        process: &KeeperProcess,
        patience: Option<Duration>,
    ) -> io::Result<Option<KeeperConnection>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        while !process.has_exited() {
            let error = match KeeperConnection::connect_with_timeout(&self.0.socket, patience) {
                Ok(again) => return Ok(Some(again)),
                Err(error) => error,
            };
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !process.wait(UNREACHABLE_PAUSE) && late {
                return Err(error);
            }
        }
        Ok(None)
    }

    /// Makes the keeper's panes the same as the panes of this server.
    fn compare(&self, keeper: &mut KeeperConnection) -> io::Result<()> {
        let mut wanted = self.wanted();
        for name in keeper.names()? {
            if wanted.remove(&name).is_none() {
                tracing::warn!(name, "ending a pane that this server does not know");
                keeper.forget(&name)?;
            }
        }
        for (name, pane) in wanted {
            keeper.adopt(&name, &pane)?;
        }
        Ok(())
    }

    /// Uses this connection from now on, and watches for its end.
    fn adopt(&self, connection: &mut Connection, keeper: KeeperConnection) {
        *self.process() = Some(keeper.process().clone());
        let client = self.clone();
        let watching = keeper.until_closed().and_then(|until_closed| {
            let body = move || {
                until_closed();
                client.0.closed.notify_one();
            };
            std::thread::Builder::new().name("patterm-keeper".into()).spawn(body)
        });
        if let Err(error) = watching {
            tracing::error!(%error, "cannot watch the keeper; its end will be noticed at the next start of a program");
        }
        **connection = Some(keeper);
    }

    /// Forgets a keeper that is gone.
    fn disconnect(&self, connection: &mut Connection) {
        **connection = None;
        *self.process() = None;
    }

    /// The panes that are still in use.
    fn wanted(&self) -> HashMap<String, Arc<Pane>> {
        let panes = self.panes();
        panes.iter().filter_map(|(name, pane)| Some((name.clone(), pane.upgrade()?))).collect()
    }

    /// The error for a keeper that does not answer.
    fn no_answer(&self) -> io::Error {
        let message = match self.pid() {
            Some(pid) => format!(
                "the keeper (pid {pid}) does not answer; if it is suspended, `kill -CONT {pid}` \
                 resumes it"
            ),
            None => "the keeper does not answer".into(),
        };
        io::Error::new(io::ErrorKind::TimedOut, message)
    }

    fn panes(&self) -> MutexGuard<'_, HashMap<String, Weak<Pane>>> {
        self.0.panes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> MutexGuard<'_, Option<Arc<KeeperProcess>>> {
        self.0.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pane on its way to the caller that asked for it. If that caller is cancelled, before or after the answer was
/// sent, nobody else would end the pane.
struct UnclaimedPane {
    client: KeeperClient,
    name: String,
    pane: Arc<Pane>,
    claimed: bool,
}

impl UnclaimedPane {
    fn claim(mut self) -> Arc<Pane> {
        self.claimed = true;
        self.pane.clone()
    }
}

impl Drop for UnclaimedPane {
    fn drop(&mut self) {
        if self.claimed {
            return;
        }
        let _ = self.pane.kill();
        let (client, name) = (self.client.clone(), std::mem::take(&mut self.name));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = client.forget(name).await {
                    tracing::error!(%error, "the keeper has not released a pane that is no longer needed");
                }
            });
        }
    }
}

fn system(error: &dyn std::error::Error) -> SpawnError {
    SpawnError { fault: SpawnFault::System, message: error.to_string() }
}

#[cfg(test)]
#[path = "keeper_client_tests.rs"]
mod tests;
