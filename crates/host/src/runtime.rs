//! The runtime folder: sockets, locks and the registry of one user's servers.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A Unix socket's path holds at most this many bytes on Linux, without its final zero.
const MAX_SOCKET_PATH: usize = 107;

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
        let io = |source| RuntimeError::Io { folder: self.folder.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(io)?;
        let meta = std::fs::symlink_metadata(&self.folder).map_err(io)?;
        let not_ours = |why| Err(RuntimeError::NotOurs { folder: self.folder.clone(), why });
        if !meta.is_dir() {
            return not_ours("it is a link or a file");
        }
        if meta.uid() != rustix::process::getuid().as_raw() {
            return not_ours("another user owns it");
        }
        if meta.mode() & 0o777 != 0o700 {
            let private = PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&self.folder, private).map_err(io)?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the server with this process id listens.
    pub fn socket(&self, pid: u32) -> Result<PathBuf, RuntimeError> {
        let path = self.sockets.join(format!("{}{pid}.sock", self.socket_prefix));
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(RuntimeError::PathTooLong { path });
        }
        Ok(path)
    }

    /// Everything that has the name of a server's socket, with the process id in it. Others may
    /// have put it there.
    pub(crate) fn sockets(&self) -> Vec<(u32, PathBuf)> {
        let files = std::fs::read_dir(&self.sockets).into_iter().flatten().flatten();
        let pid =
            |name: &str| name.strip_prefix(self.socket_prefix)?.strip_suffix(".sock")?.parse().ok();
        files.filter_map(|file| Some((pid(file.file_name().to_str()?)?, file.path()))).collect()
    }

    /// A file of the project with this key.
    pub(crate) fn file(&self, key: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{key}.{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
