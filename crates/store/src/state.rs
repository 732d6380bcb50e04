//! The state folder of a project, and files in it that are written whole or not at all.

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

/// The largest state file that is read: a thousand times what a busy project has, and less than would
/// fill a small machine's memory.
const FILE_BYTES: u64 = 256 << 20;

/// Why state could not be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The environment names no place for it.
    #[error("neither XDG_STATE_HOME nor HOME is set, so there is no place to keep state")]
    NoPlace,
    /// The file system said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Somebody else can have put it there.
    #[error(
        "{path} is left alone: {why}; state is kept only in files and folders that belong to you \
         alone: mend it, or set XDG_STATE_HOME"
    )]
    NotOurs {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no room on the disk.
    #[error(
        "cannot {what} {path}: {source}. The disk is full, so nothing was recorded; free some room, \
         and try again"
    )]
    Full {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Written by a version that this one does not understand.
    #[error(
        "{path} has version {found}, and this patterm reads up to {known}; use the newer patterm"
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
}

/// A project's state folder: `$XDG_STATE_HOME/patterm/<key>`.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The folder that the environment asks for; it may not exist yet.
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

    /// Makes the folder if need be, and makes sure that it and the one around it are ours alone.
    pub fn ensure(&self) -> Result<(), StateError> {
        self.make().map(drop)
    }

    /// The same, and opens it.
    pub fn make(&self) -> Result<PrivateDir, StateError> {
        if let Some(around) = self.0.parent() {
            PrivateDir::make_behind_own_link(around).map_err(refused("make", around))?;
        }
        PrivateDir::make(&self.0).map_err(refused("make", &self.0))
    }

    /// Opens it to look into it; `None` where it is not there, or not ours alone.
    pub fn look(&self) -> Option<PrivateDir> {
        PrivateDir::open(&self.0).ok()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The files in it that were damaged and set aside, by name.
    pub fn damaged(&self) -> Vec<PathBuf> {
        let names = self.look().and_then(|folder| folder.names().ok()).unwrap_or_default();
        let is_damaged = |name: &OsString| name.to_string_lossy().contains(DAMAGED);
        let mut damaged: Vec<_> = names.into_iter().filter(is_damaged).collect();
        damaged.sort();
        damaged.into_iter().map(|name| self.0.join(name)).collect()
    }
}

/// A file of the state folder: the version, then what it holds.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// Only the version, to tell a newer file from a damaged one.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Reads a file written by [`write`]. `None` if there is none. A damaged one is set aside under
/// another name with a message in the log; it is never overwritten.
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
                "a state file is damaged; it is kept under another name and a new one begun");
            Ok(None)
        }
    }
}

/// Writes a file whole or not at all, for its owner only; it is on the disk when this returns.
pub fn write<T: Serialize>(path: &Path, version: u32, content: &T) -> Result<(), StateError> {
    let (folder, name) = split(path).map_err(failed("write", path))?;
    let folder = PrivateDir::open_to_write(folder).map_err(refused("write into", folder))?;
    let text = serde_json::to_vec_pretty(&Versioned { version, content })
        .map_err(|e| failed("write", path)(io::Error::other(e)))?;
    folder.write(name, &text).map_err(failed("write", path))
}

/// The same for what has happened, or takes something away: on a full disk it is written in the room
/// that is kept for that.
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

/// Replaces a file's content in one step, in whatever folder.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let (folder, name) = split(path)?;
    write_in(&File::open(folder)?, name, content)
}

fn split(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    path.parent().zip(name).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// What stands between the name of a damaged file and the time at which it was set aside.
const DAMAGED: &str = ".damaged-";

fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let aside = PathBuf::from(format!("{}{DAMAGED}{now}", path.display()));
    std::fs::rename(path, &aside).map_err(failed("set aside", path))?;
    Ok(aside)
}

fn refused(what: &'static str, path: &Path) -> impl FnOnce(Refusal) -> StateError {
    let path = path.to_owned();
    move |refusal| match refusal {
        Refusal::Io(source) => failed(what, &path)(source),
        Refusal::NotOurs(why) => StateError::NotOurs { path, why },
    }
}

/// Turns an I/O error into a [`StateError`] that says what was tried, and with which file.
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

    /// A folder that is ours alone.
    fn private_folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        PrivateDir::make(dir.path()).unwrap();
        dir
    }

    fn pads(names: &[&str]) -> Pads {
        Pads { names: names.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn what_is_written_is_read_and_only_the_owner_can() {
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
        assert!(error.contains("has version 2, and this patterm reads up to 1"), "{error}");
        assert!(path.exists());
    }
}
