//! Disk space reserved for a project, so that on a full disk events can still be recorded and
//! files removed. The reserve is a file of zeros: it is removed when a write finds no space,
//! and recreated afterwards.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use tokio::sync::watch;

/// Its name in the state folder.
const FILE: &str = "reserve";

/// Its size: every state file of a project fits beside the one that it replaces.
pub const RESERVE_BYTES: u64 = 1 << 20;

/// How soon to retry creating the reserve.
const RETRY: Duration = Duration::from_secs(1);

/// Only one task at a time uses the reserve.
static TURN: Mutex<()> = Mutex::new(());

/// Counts how often a reserve was used and could not be recreated at once.
static USED: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// Creates the reserve of a state folder, or restores its full size.
pub fn establish(folder: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(folder.join(FILE))?;
    let kept = file.metadata()?;
    if kept.is_file() && kept.blocks() * 512 < RESERVE_BYTES {
        // An attempt that cannot succeed would briefly take the space from others.
        let disk = fstatvfs(&file)?;
        let missing = RESERVE_BYTES - kept.blocks() * 512;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < missing {
            return Err(Errno::NOSPC.into());
        }
        fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
    }
    Ok(())
}

/// Does something that needs disk space; if there is none, uses the reserve.
pub(crate) fn with_room<T>(folder: &Path, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match work() {
        Err(error) if is_disk_full(&error) => {}
        done => return done,
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // The output of programs has its own files, which must not take this space.
    let _no_files = patterm_keeper::log::block_new_files();
    let _ = std::fs::remove_file(folder.join(FILE));
    let done = work();
    if let Err(error) = establish(folder) {
        tracing::warn!(%error, "cannot recreate the disk reserve yet");
        USED.send_modify(|count| *count += 1);
    }
    done
}

/// Creates the reserve on a thread that may block on the disk, and not while another task uses it.
async fn establish_elsewhere(folder: &Path) -> io::Result<()> {
    let folder = folder.to_owned();
    let made = tokio::task::spawn_blocking(move || {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        establish(&folder)
    });
    made.await.map_err(io::Error::other)?
}

/// Recreates the reserve whenever it is missing or too small; `report` is called with `false`
/// while the disk has no space for it.
pub async fn keep(folder: &Path, report: impl Fn(bool)) {
    let mut used = USED.subscribe();
    loop {
        used.mark_unchanged();
        match establish_elsewhere(folder).await {
            Ok(()) => {
                report(true);
                if used.changed().await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot create the disk reserve");
                report(!is_disk_full(&error));
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Whether an operation failed for lack of disk space.
pub fn is_disk_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| full.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_finds_no_space_is_repeated_with_the_reserve() {
        let dir = tempfile::tempdir().unwrap();
        establish(dir.path()).unwrap();
        let kept = || dir.path().join(FILE).metadata().map_or(0, |file| file.blocks() * 512);
        assert!(kept() >= RESERVE_BYTES);
        let done = with_room(dir.path(), || match kept() {
            0 => Ok("done"),
            _ => Err(io::Error::from(Errno::NOSPC)),
        });
        assert_eq!(done.unwrap(), "done");
        assert!(kept() >= RESERVE_BYTES, "the reserve is recreated");
        let refused =
            with_room(dir.path(), || Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
