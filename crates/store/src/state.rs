//! The state folder of a project, and files in it that are replaced atomically.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::private::{PrivateDir, Refusal, write_in};
use crate::reserve;

/// The largest state file that is read: a thousand times what a busy project needs, and small
/// enough not to fill a small machine's memory.
const FILE_BYTES: u64 = 256 << 20;

/// Why state could not be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The environment defines no location for state.
    #[error("neither XDG_STATE_HOME nor HOME is set, so there is no place to keep state")]
    NoPlace,
    /// A file operation failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The attempted action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user may have created it.
    #[error(
        "{path} is not used: {why}. State is kept only in files and folders that belong to you alone; \
         fix it, or set XDG_STATE_HOME"
    )]
    NotOurs {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The disk is full.
    #[error(
        "cannot {what} {path}: {source}. The disk is full, so nothing was recorded; free some space \
         and try again"
    )]
    Full {
        /// The attempted action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A newer version of patterm wrote it.
    #[error(
        "{path} has version {found}, but this patterm reads up to {known}; use the newer patterm"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this patterm reads.
        known: u32,
    },
}

/// A project's state folder: `$XDG_STATE_HOME/patterm/<key>`.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The folder according to the environment; it may not exist yet.
    pub fn from_env(key: &str) -> Result<Self, StateError> {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .ok_or(StateError::NoPlace)?;
        Ok(Self::within(&home, key))
    }

    /// The folder within a given state home.
    pub fn within(home: &Path, key: &str) -> Self {
        Self(home.join("patterm").join(key))
    }

    /// Creates the folder if necessary, and makes sure that it and its parent are private.
    pub fn ensure(&self) -> Result<(), StateError> {
        self.make().map(drop)
    }

    /// Does the same, and opens it.
    pub fn make(&self) -> Result<PrivateDir, StateError> {
        if let Some(around) = self.0.parent() {
            PrivateDir::make_behind_own_link(around).map_err(refused("make", around))?;
        }
        PrivateDir::make(&self.0).map_err(refused("make", &self.0))
    }

    /// Whether it exists. If it does, makes sure that it and its parent are private.
    pub fn check(&self) -> Result<bool, StateError> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        if self.0.parent().is_some_and(|around| !exists(around)) {
            return Ok(false);
        }
        if let Some(around) = self.0.parent() {
            PrivateDir::make_behind_own_link(around).map_err(refused("open", around))?;
        }
        if !exists(&self.0) {
            return Ok(false);
        }
        PrivateDir::open_to_write(&self.0).map_err(refused("open", &self.0))?;
        Ok(true)
    }

    /// Opens it for reading; `None` if it does not exist or is not private.
    pub fn open(&self) -> Option<PrivateDir> {
        PrivateDir::open(&self.0).ok()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The damaged files in it that were set aside, sorted by name.
    pub fn damaged(&self) -> Vec<PathBuf> {
        let names = self.open().and_then(|folder| folder.names().ok()).unwrap_or_default();
        let is_damaged = |name: &OsString| name.to_string_lossy().contains(DAMAGED);
        let mut damaged: Vec<_> = names.into_iter().filter(is_damaged).collect();
        damaged.sort();
        damaged.into_iter().map(|name| self.0.join(name)).collect()
    }
}

impl StateDir {
    /// The names that the damaged files in it had before they were set aside, sorted.
    pub fn damaged_names(&self) -> Vec<String> {
        let names = self.damaged().into_iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some(name.split_once(DAMAGED)?.0.to_owned())
        });
        names.collect()
    }
}

/// A state file: the version, then the content.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// Only the version, to distinguish a newer file from a damaged one.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Reads a file written by [`write`]; `None` if it does not exist. A damaged file is renamed
/// and logged, never overwritten.
pub fn read<T: DeserializeOwned>(path: &Path, known: u32) -> Result<Option<T>, StateError> {
    let (folder, name) = split(path).map_err(failed("read", path))?;
    let found = PrivateDir::open(folder)
        .map_err(|refusal| (folder, refusal))
        .and_then(|dir| dir.read(name, FILE_BYTES).map_err(|refusal| (path, refusal)));
    let text = match found {
        Ok(text) => text,
        Err((_, refusal)) if refusal.is_absence() => return Ok(None),
        Err((where_from, refusal)) => return Err(refused("read", where_from)(refusal)),
    };
    if let Ok(VersionOnly { version: found }) = serde_json::from_slice(&text)
        && found > known
    {
        return Err(StateError::Newer { path: path.to_owned(), found, known });
    }
    match serde_json::from_slice::<Versioned<T>>(&text) {
        Ok(file) => Ok(Some(file.content)),
        Err(error) => {
            let aside = set_aside(path)?;
            tracing::error!(file = %path.display(), aside = %aside.display(), %error,
                "a state file is damaged; it was renamed and a new one is used");
            Ok(None)
        }
    }
}

/// Writes a file atomically, readable by its owner only; it is on disk when this returns.
pub fn write<T: Serialize>(path: &Path, version: u32, content: &T) -> Result<(), StateError> {
    let (folder, name) = split(path).map_err(failed("write", path))?;
    let folder = PrivateDir::open_to_write(folder).map_err(refused("write into", folder))?;
    let text = serde_json::to_vec_pretty(&Versioned { version, content })
        .map_err(|e| failed("write", path)(io::Error::other(e)))?;
    folder.write(name, &text).map_err(failed("write", path))
}

/// Does the same for a change that records an event or frees something: on a full disk it uses
/// the reserve.
pub fn write_reserved<T: Serialize>(
    path: &Path,
    version: u32,
    content: &T,
) -> Result<(), StateError> {
    let (folder, name) = split(path).map_err(failed("write", path))?;
    let opened = PrivateDir::open_to_write(folder).map_err(refused("write into", folder))?;
    let text = serde_json::to_vec_pretty(&Versioned { version, content })
        .map_err(|e| failed("write", path)(io::Error::other(e)))?;
    reserve::with_room(folder, || opened.write(name, &text)).map_err(failed("write", path))
}

/// Replaces a file's content atomically, in any folder.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let (folder, name) = split(path)?;
    write_in(&File::open(folder)?, name, content)
}

fn split(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    path.parent().zip(name).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The part between a damaged file's name and the time at which it was set aside.
const DAMAGED: &str = ".damaged-";

fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let aside = PathBuf::from(format!("{}{DAMAGED}{now}", path.display()));
    std::fs::rename(path, &aside).map_err(failed("set aside", path))?;
    Ok(aside)
}

/// Turns a refusal into a [`StateError`] in the same way.
pub fn refused(what: &'static str, path: &Path) -> impl FnOnce(Refusal) -> StateError {
    let path = path.to_owned();
    move |refusal| match refusal {
        Refusal::Io(source) => failed(what, &path)(source),
        Refusal::NotOurs(why) => StateError::NotOurs { path, why },
    }
}

/// Turns an I/O error into a [`StateError`] with the failed action and its file.
pub fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |source| match reserve::is_disk_full(&source) {
        true => StateError::Full { what, path, source },
        false => StateError::Io { what, path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Pads {
        names: Vec<String>,
    }

    /// A private folder.
    fn private_folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        PrivateDir::make(dir.path()).unwrap();
        dir
    }

    fn pads(names: &[&str]) -> Pads {
        Pads { names: names.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn written_state_is_read_back_and_only_the_owner_can_read_it() {
        use std::os::unix::fs::MetadataExt;
        let dir = private_folder();
        let path = dir.path().join("pads.json");
        assert_eq!(read::<Pads>(&path, 1).unwrap(), None);
        write(&path, 1, &pads(&["a"])).unwrap();
        write(&path, 1, &pads(&["a", "b"])).unwrap();
        assert_eq!(read(&path, 1).unwrap(), Some(pads(&["a", "b"])));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_kept() {
        let dir = private_folder();
        let path = dir.path().join("pads.json");
        std::fs::write(&path, "{\"version\":1,\"na").unwrap();
        assert_eq!(read::<Pads>(&path, 1).unwrap(), None);
        assert_eq!(StateDir(dir.path().to_owned()).damaged_names(), ["pads.json"]);
        let kept: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(kept.len(), 1);
        assert!(kept[0].file_name().to_string_lossy().starts_with("pads.json.damaged-"));
        assert_eq!(std::fs::read(kept[0].path()).unwrap(), b"{\"version\":1,\"na");
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let dir = private_folder();
        let path = dir.path().join("pads.json");
        std::fs::write(&path, r#"{"version":2,"pads":[]}"#).unwrap();
        let error = read::<Pads>(&path, 1).unwrap_err().to_string();
        assert!(error.contains("has version 2, but this patterm reads up to 1"), "{error}");
        assert!(path.exists());
    }
}
