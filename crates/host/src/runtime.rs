//! The runtime folder: sockets, locks and the registry of one user's servers.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use patterm_keeper::peer_process;
use patterm_store::private::{PrivateDir, Refusal, own_uid};

/// The longest path of a Unix socket on Linux, without its terminating NUL byte.
const MAX_SOCKET_PATH: usize = 107;

/// How long a server may take to accept a connection while its backlog is full. A running
/// server empties it at once; a suspended one does not.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Why the runtime folder cannot be used.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// It cannot be created or read.
    #[error("cannot use the runtime folder {folder}: {source}")]
    Io {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user owns it, or it is not a folder.
    #[error(
        "{folder} is not a folder that belongs to you alone ({why}); remove it or set XDG_RUNTIME_DIR"
    )]
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The socket's path is too long.
    #[error(
        "the socket path {path} is longer than {MAX_SOCKET_PATH} bytes; set a shorter XDG_RUNTIME_DIR"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
}

/// The folder for files that live only as long as the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeDir {
    folder: PathBuf,
    /// The folder of the sockets: the folder itself, or `/tmp` if the session has no
    /// runtime folder.
    sockets: PathBuf,
    /// The prefix of their names, before the process id.
    socket_prefix: &'static str,
}

impl RuntimeDir {
    /// The folder according to the environment; it may not exist yet.
    pub fn from_env() -> Self {
        Self::for_session(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).as_deref())
    }

    /// The folder within the session's runtime folder, or the one in `/tmp`. A relative
    /// path counts as unset, as the XDG specification demands.
    pub fn for_session(session: Option<&Path>) -> Self {
        match session.filter(|path| path.is_absolute()) {
            Some(session) => {
                let folder = session.join("patterm");
                Self { sockets: folder.clone(), socket_prefix: "", folder }
            }
            None => {
                let uid = rustix::process::getuid().as_raw();
                Self {
                    folder: format!("/tmp/patterm-{uid}").into(),
                    sockets: "/tmp".into(),
                    socket_prefix: "patterm-",
                }
            }
        }
    }

    /// Every folder in which a server of this user may have registered, likeliest first.
    /// Some clients start their MCP servers without XDG_RUNTIME_DIR, so its usual value is
    /// included.
    pub fn candidates(socket: Option<&Path>) -> Vec<Self> {
        let uid = rustix::process::getuid().as_raw();
        let beside_socket = socket.and_then(Path::parent).and_then(Path::parent);
        let mut found = vec![Self::from_env()];
        let others = [beside_socket, Some(Path::new(&format!("/run/user/{uid}"))), None]
            .map(Self::for_session);
        for other in others {
            if !found.contains(&other) {
                found.push(other);
            }
        }
        found
    }

    /// Creates the folder if necessary, and makes sure that it is private.
    pub fn ensure(&self) -> Result<(), RuntimeError> {
        self.make().map(drop)
    }

    /// Does the same, and opens it.
    pub(crate) fn make(&self) -> Result<PrivateDir, RuntimeError> {
        let folder = self.folder.clone();
        PrivateDir::make(&self.folder).map_err(|refusal| match refusal {
            Refusal::Io(source) => RuntimeError::Io { folder, source },
            Refusal::NotOurs(why) => RuntimeError::NotOurs { folder, why },
        })
    }

    /// Opens it for reading; `None` if it does not exist or is not private.
    pub(crate) fn open(&self) -> Option<PrivateDir> {
        PrivateDir::open(&self.folder).ok()
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket path of the server with this process id.
    pub fn socket(&self, pid: u32) -> Result<PathBuf, RuntimeError> {
        fits(self.sockets.join(format!("{}{pid}.sock", self.socket_prefix)))
    }

    /// The socket path to use if another user took the usual one: in our own folder nobody
    /// can. `None` if that is the usual one.
    pub(crate) fn private_socket(&self, pid: u32) -> Result<Option<PathBuf>, RuntimeError> {
        let elsewhere =
            (self.sockets != self.folder).then(|| self.folder.join(format!("{pid}.sock")));
        elsewhere.map(fits).transpose()
    }

    /// All files with the name of a server's socket, with the process id in the name. Other
    /// users may have created them.
    pub(crate) fn sockets(&self) -> Vec<(u32, PathBuf)> {
        let mut found = sockets_in(&self.sockets, self.socket_prefix);
        if self.sockets != self.folder {
            found.extend(sockets_in(&self.folder, ""));
        }
        found
    }

    /// The path of a file of the project with this key.
    pub(crate) fn file(&self, key: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{key}.{ending}"))
    }
}

fn fits(path: PathBuf) -> Result<PathBuf, RuntimeError> {
    match path.as_os_str().len() > MAX_SOCKET_PATH {
        true => Err(RuntimeError::PathTooLong { path }),
        false => Ok(path),
    }
}

fn sockets_in(folder: &Path, prefix: &str) -> Vec<(u32, PathBuf)> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pid = |name: &str| name.strip_prefix(prefix)?.strip_suffix(".sock")?.parse().ok();
    files.filter_map(|file| Some((pid(file.file_name().to_str()?)?, file.path()))).collect()
}

/// Connects to a server of our own user. `None` if nobody or another user listens there: then
/// nothing was sent, and the caller must look elsewhere.
pub fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    connect_within(socket, CONNECT_PATIENCE)
}

/// Like [`connect`], with another limit on the time that a server with a full backlog may take.
pub fn connect_within(socket: &Path, patience: Duration) -> io::Result<Option<UnixStream>> {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, WouldBlock};
    // Another user's socket could block us forever before its owner is known.
    if !is_own_socket(socket) {
        return Ok(None);
    }
    let stream = match patterm_keeper::connect(socket, patience) {
        Ok(stream) => stream,
        Err(e) if e.kind() == WouldBlock => {
            let message = format!(
                "the server has not accepted a connection for {patience:?}; if it is suspended, \
                 `kill -CONT` with its process id resumes it"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Err(e) if matches!(e.kind(), ConnectionRefused | NotFound | PermissionDenied) => {
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|e| peer_error(e.into()))?;
    // A program that a server was starting when it was killed holds the server's sockets until it is executed: a
    // connection is accepted then, and nobody answers.
    let has_ended = || peer_process(stream.as_fd()).is_some_and(|peer| peer.has_ended());
    Ok((peer.uid.as_raw() == own_uid() && !has_ended()).then_some(stream))
}

/// Why the server's process is unknown. In another pid namespace the kernel reports none, which is no error code.
fn peer_error(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        None | Some(0) => io::Error::other(
            "the server runs in another pid namespace (a container, or `unshare --pid`), so its process cannot \
             be identified; run this command where the server runs",
        ),
        Some(_) => error,
    }
}

/// Whether a path leads to a socket of ours, and not through another user's link.
fn is_own_socket(path: &Path) -> bool {
    let ours = |meta: &std::fs::Metadata| meta.uid() == own_uid();
    std::fs::symlink_metadata(path).is_ok_and(|found| ours(&found))
        && std::fs::metadata(path).is_ok_and(|found| ours(&found) && found.file_type().is_socket())
}

/// Whether a server listens at a path, without connecting to it.
pub(crate) fn has_listener(path: &Path) -> bool {
    is_own_socket(path) && patterm_keeper::has_listener(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_listener_is_detected_without_a_connection() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        assert!(!has_listener(&path));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(has_listener(&path));
        assert!(listener.accept().is_err(), "nobody connected");
        drop(listener);
        assert!(!has_listener(&path), "the file exists, but nobody listens");
    }

    #[test]
    fn connecting_to_a_server_that_accepts_nothing_times_out() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match patterm_keeper::connect(&path, Duration::ZERO) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let late = patterm_keeper::connect(&path, Duration::from_millis(10)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::WouldBlock);
        drop(listener.accept().unwrap());
        assert!(connect(&path).unwrap().is_some(), "there is room for one more");
    }

    #[test]
    fn a_server_in_another_pid_namespace_is_named_as_the_cause() {
        let error = peer_error(io::Error::from_raw_os_error(0)).to_string();
        assert!(error.contains("another pid namespace") && !error.contains("Success"), "{error}");
        let other = peer_error(rustix::io::Errno::BADF.into());
        assert_eq!(other.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
    }

    #[test]
    fn paths_with_and_without_a_session_folder() {
        let dir = RuntimeDir::for_session(Some(Path::new("/run/user/7")));
        assert_eq!(dir.folder(), Path::new("/run/user/7/patterm"));
        assert_eq!(dir.socket(42).unwrap(), Path::new("/run/user/7/patterm/42.sock"));
        let uid = rustix::process::getuid().as_raw();
        for session in [None, Some(Path::new("relative"))] {
            let dir = RuntimeDir::for_session(session);
            assert_eq!(dir.folder(), Path::new(&format!("/tmp/patterm-{uid}")));
            assert_eq!(dir.socket(42).unwrap(), Path::new("/tmp/patterm-42.sock"));
        }
        let long = RuntimeDir::for_session(Some(Path::new(&format!("/{}", "x".repeat(120)))));
        assert!(long.socket(1).unwrap_err().to_string().contains("shorter XDG_RUNTIME_DIR"));
    }

    #[test]
    fn the_path_of_a_socket_reveals_its_runtime_folder() {
        let found = RuntimeDir::candidates(Some(Path::new("/x/y/patterm/42.sock")));
        assert!(found.contains(&RuntimeDir::for_session(Some(Path::new("/x/y")))));
    }

    #[test]
    fn a_link_is_refused_and_an_open_folder_is_made_private() {
        let top = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::for_session(Some(top.path()));
        std::os::unix::fs::symlink("/tmp", dir.folder()).unwrap();
        assert!(matches!(dir.ensure(), Err(RuntimeError::NotOurs { .. })));
        std::fs::remove_file(dir.folder()).unwrap();
        std::fs::create_dir(dir.folder()).unwrap();
        std::fs::set_permissions(dir.folder(), PermissionsExt::from_mode(0o755)).unwrap();
        dir.ensure().unwrap();
        assert_eq!(std::fs::metadata(dir.folder()).unwrap().mode() & 0o777, 0o700);
    }
}
