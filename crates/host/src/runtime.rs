//! The runtime folder: sockets, locks and the registry of one user's servers.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use patterm_store::private::{PrivateDir, Refusal, own_uid};

/// A Unix socket's path holds at most this many bytes on Linux, without its final zero.
const MAX_SOCKET_PATH: usize = 107;

/// How long a server may take to accept a connection while its queue of them is full. One that works
/// empties it at once; one that is suspended does not.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Why the runtime folder cannot be used.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// Made or read in vain.
    #[error("cannot use the runtime folder {folder}: {source}")]
    Io {
        /// Which folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Someone else's, or no folder.
    #[error(
        "{folder} is not a folder that belongs to you alone ({why}); remove it or set XDG_RUNTIME_DIR"
    )]
    NotOurs {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The socket's name would not fit.
    #[error(
        "the socket path {path} is longer than {MAX_SOCKET_PATH} bytes; set a shorter XDG_RUNTIME_DIR"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
}

/// The folder that holds what lives only as long as the servers do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeDir {
    folder: PathBuf,
    /// Where the sockets lie: in the folder itself, or in `/tmp` without a runtime folder of the
    /// session.
    sockets: PathBuf,
    /// What their names begin with, before the process id.
    socket_prefix: &'static str,
}

impl RuntimeDir {
    /// The folder that the environment asks for; it may not exist yet.
    pub fn from_env() -> Self {
        Self::for_session(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).as_deref())
    }

    /// The folder within the session's runtime folder, or the one in `/tmp`. A relative path
    /// counts as unset, as the XDG specification asks.
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

    /// Every folder a server of this user may have registered in, likeliest first. Some clients
    /// start their MCP servers without XDG_RUNTIME_DIR, so that one's usual place is among them.
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

    /// Makes the folder if need be, and makes sure that it is ours alone.
    pub fn ensure(&self) -> Result<(), RuntimeError> {
        self.make().map(drop)
    }

    /// The same, and opens it.
    pub(crate) fn make(&self) -> Result<PrivateDir, RuntimeError> {
        let folder = self.folder.clone();
        PrivateDir::make(&self.folder).map_err(|refusal| match refusal {
            Refusal::Io(source) => RuntimeError::Io { folder, source },
            Refusal::NotOurs(why) => RuntimeError::NotOurs { folder, why },
        })
    }

    /// Opens it to look into it; `None` where it is not there, or where somebody else can have put
    /// something into it.
    pub(crate) fn look(&self) -> Option<PrivateDir> {
        PrivateDir::open(&self.folder).ok()
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the server with this process id listens.
    pub fn socket(&self, pid: u32) -> Result<PathBuf, RuntimeError> {
        fits(self.sockets.join(format!("{}{pid}.sock", self.socket_prefix)))
    }

    /// Where it listens when somebody else took that name: in a folder of ours nobody can. `None`
    /// where that is the usual place.
    pub(crate) fn private_socket(&self, pid: u32) -> Result<Option<PathBuf>, RuntimeError> {
        let elsewhere =
            (self.sockets != self.folder).then(|| self.folder.join(format!("{pid}.sock")));
        elsewhere.map(fits).transpose()
    }

    /// Everything that has the name of a server's socket, with the process id in it. Others may
    /// have put it there.
    pub(crate) fn sockets(&self) -> Vec<(u32, PathBuf)> {
        let mut found = sockets_in(&self.sockets, self.socket_prefix);
        if self.sockets != self.folder {
            found.extend(sockets_in(&self.folder, ""));
        }
        found
    }

    /// A file of the project with this key.
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

/// Connects to a server of our own user. `None` where nobody listens, or somebody else does: then
/// nothing was sent to him, and the server is to be looked for elsewhere.
pub fn connect(socket: &Path) -> io::Result<Option<UnixStream>> {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, WouldBlock};
    // Another user's socket could keep us waiting for ever before it says whose it is.
    if !is_own_socket(socket) {
        return Ok(None);
    }
    let stream = match patterm_keeper::connect(socket, CONNECT_PATIENCE) {
        Ok(stream) => stream,
        Err(e) if e.kind() == WouldBlock => {
            let message = format!(
                "the server has not accepted a connection for {CONNECT_PATIENCE:?}; if it is suspended, \
                 `kill -CONT` with its process id resumes it"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Err(e) if matches!(e.kind(), ConnectionRefused | NotFound | PermissionDenied) => {
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    Ok((peer.uid.as_raw() == own_uid()).then_some(stream))
}

/// Whether a path leads to a socket of ours, by no link of somebody else's.
fn is_own_socket(path: &Path) -> bool {
    let ours = |meta: &std::fs::Metadata| meta.uid() == own_uid();
    std::fs::symlink_metadata(path).is_ok_and(|found| ours(&found))
        && std::fs::metadata(path).is_ok_and(|found| ours(&found) && found.file_type().is_socket())
}

/// Whether somebody listens at a path, without a connection: whoever listens notices nothing.
pub(crate) fn is_listened_at(path: &Path) -> bool {
    is_own_socket(path) && patterm_keeper::is_listened_at(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_listener_is_seen_without_a_connection() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("s");
        assert!(!is_listened_at(&path));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(is_listened_at(&path));
        assert!(listener.accept().is_err(), "nobody connected");
        drop(listener);
        assert!(!is_listened_at(&path), "the file is there, and nobody behind it");
    }

    #[test]
    fn a_server_that_accepts_nothing_is_waited_for_a_bounded_time() {
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
    fn the_socket_of_a_server_points_to_its_folder() {
        let found = RuntimeDir::candidates(Some(Path::new("/x/y/patterm/42.sock")));
        assert!(found.contains(&RuntimeDir::for_session(Some(Path::new("/x/y")))));
    }

    #[test]
    fn a_folder_that_is_a_link_or_too_open_is_refused_or_closed() {
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
