//! The files of a log: their names, and creating, opening and setting them aside.

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use super::index;
use super::segment::Segment;

/// Damaged files kept for inspection: they do not count towards the budget.
const KEPT_DAMAGED: usize = 4;

/// The extension of damaged files.
const DAMAGED: &str = "damaged";

/// The file that is allocated to check for room on disk.
const TRIAL: &str = "room.tmp";

/// The file whose first byte has this offset.
pub(super) fn path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:020}.log"))
}

/// Opens all files of a folder, oldest first. Damaged ones are set aside.
pub(super) fn open_all(folder: &Path) -> io::Result<VecDeque<Arc<Segment>>> {
    make_folder(folder)?;
    let mut segments = Vec::new();
    for path in ending_in(folder, "log")? {
        match Segment::open(&path) {
            Ok(segment) => segments.push(Arc::new(segment)),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => set_aside(&path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    // A server that died while reusing a file may have left it under its old name.
    segments.sort_by_key(|segment| segment.start());
    Ok(segments.into())
}

/// Removes a file and the index beside it.
pub(super) fn remove(path: &Path) {
    // First, so that no index stays without its file.
    let _ = std::fs::remove_file(index::path(path));
    let _ = std::fs::remove_file(path);
    // A key frame may have been added meanwhile. Whoever adds one later sees that the file is gone.
    let _ = std::fs::remove_file(index::path(path));
}

/// Removes indexes without log files, which 0.1.0 leaves behind, and those that a server had not finished when it was
/// killed.
pub(super) fn remove_stray_indexes(folder: &Path) {
    for unfinished in ending_in(folder, index::UNFINISHED).unwrap_or_default() {
        let _ = std::fs::remove_file(unfinished);
    }
    for index in ending_in(folder, "index").unwrap_or_default() {
        if !index.with_extension("log").exists() {
            let _ = std::fs::remove_file(index);
        }
    }
}

/// Held while no log may take room on disk with a new file.
static NEW_FILES: RwLock<()> = RwLock::new(());

/// Prevents all logs from creating files while the guard is held: room was made for something else.
pub fn block_new_files() -> RwLockWriteGuard<'static, ()> {
    NEW_FILES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a file, and the folder if it was removed.
pub(super) fn create(folder: &Path, start: u64, bytes: usize) -> io::Result<Segment> {
    let _guard = check_new_files()?;
    let path = path(folder, start);
    match Segment::create(&path, start, bytes) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => make_folder(folder)?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => match Segment::open(&path) {
            // A server died just after it created the file.
            Ok(unused) if unused.end() == start => return Ok(unused),
            // Another writer's, whose bytes must not be overwritten.
            Ok(_) => return Err(e),
            Err(_) => set_aside(&path),
        },
        made => return made,
    }
    Segment::create(&path, start, bytes)
}

/// Checks whether there is room for a file.
pub(super) fn check_room(folder: &Path, bytes: usize) -> io::Result<()> {
    let _guard = check_new_files()?;
    let path = folder.join(TRIAL);
    let _ = std::fs::remove_file(&path);
    let tried = Segment::create(&path, 0, bytes).map(drop);
    let _ = std::fs::remove_file(&path);
    tried
}

/// Fails as on a full disk while files are blocked: the log continues without a new file.
fn check_new_files() -> io::Result<RwLockReadGuard<'static, ()>> {
    match NEW_FILES.try_read() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
    }
}

/// Renames a damaged file; only the newest of them are kept.
pub(super) fn set_aside(path: &Path) {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{DAMAGED}"));
    let _ = std::fs::remove_file(index::path(path));
    // A file that was removed needs no other name.
    let _ = std::fs::rename(path, name);
    let kept = path.parent().map(|folder| ending_in(folder, DAMAGED));
    let Some(Ok(kept)) = kept else { return };
    for old in kept.iter().rev().skip(KEPT_DAMAGED) {
        let _ = std::fs::remove_file(old);
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().recursive(true).mode(0o700).create(folder);
    match make() {
        // Something else has its name.
        Err(e)
            if matches!(e.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) =>
        {
            set_aside(folder);
            make()
        }
        made => made,
    }
}

/// The files of a folder with an extension, by name.
pub(super) fn ending_in(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.flatten().map(|file| file.path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    paths.sort();
    Ok(paths)
}
