//! Checks the folders in which patterm keeps sockets and state. Nothing is created in them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use patterm_host::Project;
use patterm_host::runtime::RuntimeDir;
use patterm_store::reserve::RESERVE_BYTES;
use patterm_store::state::StateDir;
use rustix::fs::{Access, access};
use serde::de::IgnoredAny;

use super::{Finding, broken, fair, good};
use crate::print::printable_path;

/// Less space than this fills up within a day of work.
const LITTLE_SPACE: u64 = 512 << 20;

/// Files or folders that are listed: more than a single fault affects.
const MOST_LISTED: usize = 10;

/// The folder of sockets and locks.
pub(super) fn runtime() -> Finding {
    const CHECK: &str = "runtime folder";
    let folder = RuntimeDir::from_env();
    let path = folder.folder();
    // With the longest process id: the socket's path must fit into an address.
    let socket = folder.socket(u32::MAX).map_err(|error| error.to_string()).map(drop);
    let usable = socket.and_then(|()| match path.symlink_metadata() {
        Ok(_) => folder.ensure().map_err(|error| error.to_string()),
        Err(_) => can_create(path),
    });
    match usable {
        Ok(()) => good(CHECK, path.display().to_string()),
        Err(why) => {
            broken(CHECK, why, "it must belong to you and be inaccessible to others: chmod 700")
        }
    }
}

/// The folder of a project's state.
pub(super) fn state(project: &Project) -> Finding {
    const CHECK: &str = "state folder";
    const ADVICE: &str = "XDG_STATE_HOME must be a folder that you can write to";
    let state = match StateDir::from_env(project.key()) {
        Ok(state) => state,
        Err(error) => return broken(CHECK, error.to_string(), ADVICE),
    };
    let path = state.path();
    match state.check() {
        Ok(true) => {}
        Ok(false) => {
            return match can_create(path) {
                Ok(()) => good(CHECK, format!("{}, once it is needed", path.display())),
                Err(why) => broken(CHECK, why, ADVICE),
            };
        }
        Err(error) => return broken(CHECK, error.to_string(), ADVICE),
    }
    let probe = state.file("doctor");
    let written = std::fs::write(&probe, "");
    let _ = std::fs::remove_file(&probe);
    if let Err(error) = written {
        let text = format!("{}: {error}", path.display());
        return broken(CHECK, text, "make it writable, or free some space");
    }
    if let Some(text) = listed(&unwritable(path), "cannot be written") {
        return broken(CHECK, text, "`chmod -R u+rwX FOLDER` makes a folder writable");
    }
    match free_space(path) {
        Some(bytes) if bytes < RESERVE_BYTES => {
            let text = format!("the disk of {} is full", path.display());
            broken(CHECK, text, "programs' output and all state are stored there; free some space")
        }
        Some(bytes) if bytes < LITTLE_SPACE => {
            let text = format!("{} has {} MiB left", path.display(), bytes >> 20);
            fair(CHECK, text, "programs' output is stored there; free some space")
        }
        _ => good(CHECK, path.display().to_string()),
    }
}

/// Whether a folder that does not exist can be created.
fn can_create(folder: &Path) -> Result<(), String> {
    let exists = |folder: &&Path| folder.symlink_metadata().is_ok();
    let Some(above) = folder.ancestors().find(exists) else { return Ok(()) };
    let cannot = |why: &dyn std::fmt::Display| {
        format!("cannot create {} in {}: {why}", folder.display(), above.display())
    };
    if !above.is_dir() {
        return Err(cannot(&"it is not a folder"));
    }
    access(above, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| cannot(&errno))
}

/// The folders in the state folder that cannot be written.
fn unwritable(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let is_unwritable = |path: &PathBuf| access(path, Access::WRITE_OK | Access::EXEC_OK).is_err();
    let mut found: Vec<_> = folders.map(|entry| entry.path()).filter(is_unwritable).collect();
    found.sort();
    found
}

/// State files that are damaged, or that a server found damaged and no longer uses.
pub(super) fn damaged_files(project: &Project) -> Option<Finding> {
    let state = StateDir::from_env(project.key()).ok()?;
    let set_aside = listed(&state.damaged(), "damaged, set aside and no longer used");
    let unreadable = listed(&unreadable(&state), "damaged; the next server sets it aside");
    let texts: Vec<_> = [set_aside, unreadable].into_iter().flatten().collect();
    (!texts.is_empty()).then(|| {
        let advice = "recover what you need from them, then remove them";
        fair("state files", texts.join("\n"), advice)
    })
}

/// Files or folders and what is wrong with them, if there are any.
fn listed(paths: &[PathBuf], what: &str) -> Option<String> {
    let mut names: Vec<_> =
        paths.iter().take(MOST_LISTED).map(|path| printable_path(path)).collect();
    if paths.len() > MOST_LISTED {
        names.push(format!("and {} more", paths.len() - MOST_LISTED));
    }
    (!names.is_empty()).then(|| format!("{what}: {}", names.join("\n")))
}

/// State files that are not JSON.
fn unreadable(state: &StateDir) -> Vec<PathBuf> {
    let files = std::fs::read_dir(state.path()).into_iter().flatten().flatten();
    let paths = files.map(|entry| entry.path());
    let is_state = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let is_damaged = |path: &PathBuf| {
        let file = File::open(path).map(BufReader::new).ok();
        file.is_some_and(|file| serde_json::from_reader::<_, IgnoredAny>(file).is_err())
    };
    paths.filter(is_state).filter(is_damaged).collect()
}

fn free_space(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}
