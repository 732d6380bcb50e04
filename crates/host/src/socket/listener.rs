//! The listening socket: accessible to its owner only, with one task for each connection, up to
//! a limit.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use patterm_wire::ErrorObject;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::{Connection, turn_away};
use super::shares::{Holder, Seat, Shares};
use crate::caller_origin::{OriginLookup, Origins, Peer};
use crate::greeting::GREETING_REFUSED;
use crate::host::Host;
use crate::runtime::{RuntimeDir, RuntimeError};
use crate::tools::Registry;
use crate::tools::{ErrorKind, ToolError};
use patterm_store::limits::SHUTDOWN_GRACE;

/// The socket of this server; dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Listener {
    path: PathBuf,
    socket: Option<StdListener>,
}

impl Listener {
    /// Listens at this process's path in the runtime folder.
    pub(crate) fn bind(runtime: &RuntimeDir) -> Result<Self, RuntimeError> {
        sweep(runtime);
        let pid = std::process::id();
        let mut path = runtime.socket(pid)?;
        let mut socket = bind_private(&path);
        if is_taken(&socket)
            && let Some(private) = runtime.private_socket(pid)?
        {
            tracing::warn!(taken = %path.display(), socket = %private.display(),
                "the socket's name in /tmp is taken; clients find this one through the registry");
            socket = bind_private(&private);
            path = private;
        }
        match socket {
            Ok(socket) => Ok(Self { path, socket: Some(socket) }),
            Err(source) => Err(RuntimeError::Io { folder: path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Serves every connection until the server shuts down, then calls `leaving` and lets
    /// each connection finish.
    pub(crate) async fn run(
        mut self,
        host: Arc<Host>,
        tools: Arc<Registry>,
        leaving: impl FnOnce(),
    ) -> io::Result<()> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        socket.set_nonblocking(true)?;
        let listener = UnixListener::from_std(socket)?;
        let mut connections = JoinSet::new();
        let shares = Shares::new(host.limits.connections);
        loop {
            host.clients.send_if_modified(|count| {
                let before = std::mem::replace(count, connections.len());
                before != *count
            });
            tokio::select! {
                () = host.shutdown.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => admit(stream, &host, &tools, &shares, &mut connections),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a connection");
                        // Without free descriptors this repeats; our
                        // connections must get their turn to free some.
                        let pause = tokio::time::sleep(ACCEPT_PAUSE);
                        tokio::select! {
                            () = host.shutdown.cancelled() => break,
                            () = pause => {}
                        }
                    }
                },
            }
        }
        // No new client is accepted; connected ones still get their responses. In the
        // meantime, the next server must not find this one's entry.
        leaving();
        drop(listener);
        let _ = std::fs::remove_file(&self.path);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(SHUTDOWN_GRACE * 2, all).await;
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The pause after a failed accept: long enough not to spin, too short to be noticed.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Admits a client of our own user, up to the limits.
fn admit(
    stream: UnixStream,
    host: &Arc<Host>,
    tools: &Arc<Registry>,
    shares: &Shares,
    connections: &mut JoinSet<()>,
) {
    while connections.try_join_next().is_some() {}
    let ours = rustix::process::getuid().as_raw();
    let admitted = match stream.peer_cred() {
        Ok(peer) if peer.uid() == ours => seat(&stream, host, shares)
            .map_err(|why| ToolError::new(ErrorKind::Limit, why).into_rpc()),
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "another user's connection was refused");
            Err(ErrorObject::new(GREETING_REFUSED, "this server belongs to another user"))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection without credentials was refused");
            return;
        }
    };
    match admitted {
        // Neither counted nor waited for: it ends once its line is written.
        Err(error) => drop(tokio::spawn(turn_away(stream, error))),
        Ok((lookup, seat)) => {
            let served = Connection::serve(stream, lookup, host.clone(), tools.clone());
            connections.spawn(async move {
                let _seat = seat;
                served.await;
            });
        }
    }
}

/// Begins to locate a client and counts its connection. At once: a process may connect and exit right away.
fn seat(
    stream: &UnixStream,
    host: &Arc<Host>,
    shares: &Shares,
) -> Result<(OriginLookup, Seat), String> {
    let origins = Origins::new(host.panes.clone(), &host.project);
    let lookup = origins.begin_lookup(Peer::of(stream));
    let seat = shares.admit(Holder::of(&lookup))?;
    Ok((lookup, seat))
}

/// Whether the path of a socket is already in use.
fn is_taken(socket: &io::Result<StdListener>) -> bool {
    socket.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AddrInUse)
}

/// Binds with mode 0600 from the start, and touches nothing that was there before.
fn bind_private(path: &Path) -> io::Result<StdListener> {
    if is_our_socket(path) {
        // The name contains our own process id, so its creator is dead.
        std::fs::remove_file(path)?;
    }
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let socket = StdListener::bind(path);
    rustix::process::umask(before);
    socket
}

/// Removes the sockets of servers that died: their process is gone and nobody listens.
fn sweep(runtime: &RuntimeDir) {
    for (pid, path) in runtime.sockets() {
        if is_dead(pid) && is_our_socket(&path) && nobody_listens(&path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Whether no process has this id, or only a zombie: a server's parent may be an init that
/// never reaps it.
fn is_dead(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The state follows the name, which may contain anything.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn is_our_socket(path: &Path) -> bool {
    let ours = rustix::process::getuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket() && m.uid() == ours)
}

fn nobody_listens(path: &Path) -> bool {
    let attempt = std::os::unix::net::UnixStream::connect(path);
    attempt.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_dead_servers_are_removed_and_others_are_kept() {
        let top = tempfile::tempdir().unwrap();
        let runtime = RuntimeDir::for_session(Some(top.path()));
        runtime.ensure().unwrap();
        let socket = |pid: u32| runtime.socket(pid).unwrap();
        drop(StdListener::bind(socket(4_000_001)).unwrap());
        let _foreign = StdListener::bind(socket(4_000_002)).unwrap();
        drop(StdListener::bind(socket(1)).unwrap());
        std::fs::write(runtime.folder().join("4000003.sock"), "a file").unwrap();
        sweep(&runtime);
        assert!(!socket(4_000_001).exists(), "dead, nobody listens");
        assert!(socket(4_000_002).exists(), "in another pid namespace: a server listens");
        assert!(socket(1).exists(), "its process is running");
        assert!(socket(4_000_003).exists(), "not a socket");
    }

    #[test]
    fn a_zombie_is_dead() {
        assert!(!is_dead(std::process::id()) && !is_dead(1));
        assert!(is_dead(4_000_001), "there is no such process");
        #[expect(clippy::disallowed_methods, reason = "a child to be a zombie")]
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        // Waits for its end and leaves it a zombie.
        let options =
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert!(is_dead(child.id()));
        child.wait().unwrap();
    }

    #[test]
    fn the_socket_is_private_and_removed_with_its_listener() {
        let top = tempfile::tempdir().unwrap();
        let runtime = RuntimeDir::for_session(Some(top.path()));
        runtime.ensure().unwrap();
        let stale = runtime.socket(std::process::id()).unwrap();
        drop(StdListener::bind(&stale).unwrap());
        let listener = Listener::bind(&runtime).unwrap();
        assert_eq!(listener.path(), stale);
        assert_eq!(stale.metadata().unwrap().mode() & 0o777, 0o600);
        drop(listener);
        assert!(!stale.exists());
    }
}
