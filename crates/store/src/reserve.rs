//! Room on the disk that is kept for a project, so that on a full disk what has happened can still be
//! written down, and what is in the way removed. It is a file that holds nothing: taken away when a write
//! finds no room, and made again afterwards.

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

/// How much is kept: every state file of a project fits in beside the one that it replaces.
pub const RESERVE_BYTES: u64 = 1 << 20;

/// How soon a reserve that could not be made is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Only one at a time uses the reserve.
static TURN: Mutex<()> = Mutex::new(());

/// Counts how often one was used: it may have to be made again.
static USED: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// Makes the reserve of a state folder where it is not whole.
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
        // An attempt that cannot succeed would take the room from others for a moment.
        let disk = fstatvfs(&file)?;
        let missing = RESERVE_BYTES - kept.blocks() * 512;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < missing {
            return Err(Errno::NOSPC.into());
        }
        fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
    }
    Ok(())
}

/// Does something that needs room on the disk; where there is none, in the room that is kept.
pub(crate) fn with_room<T>(folder: &Path, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match work() {
        Err(error) if is_disk_full(&error) => {}
        done => return done,
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // What programs print has files of its own, and must not take this room.
    let _no_files = patterm_keeper::log::block_new_files();
    let _ = std::fs::remove_file(folder.join(FILE));
    let done = work();
    if let Err(error) = establish(folder) {
        tracing::warn!(%error, "the room that is kept for state cannot be had back now");
        USED.send_modify(|count| *count += 1);
    }
    done
}

/// Makes the reserve on a thread that may wait for the disk, and not while another uses it.
async fn establish_elsewhere(folder: &Path) -> io::Result<()> {
    let folder = folder.to_owned();
    let made = tokio::task::spawn_blocking(move || {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        establish(&folder)
    });
    made.await.map_err(io::Error::other)?
}

/// Makes the reserve whenever it is not whole; `told` hears whether it is.
pub async fn keep(folder: &Path, told: impl Fn(bool)) {
    let mut used = USED.subscribe();
    loop {
        used.mark_unchanged();
        match establish_elsewhere(folder).await {
            Ok(()) => {
                told(true);
                if used.changed().await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "there is no room to keep");
                told(!is_disk_full(&error));
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Whether something failed for want of disk space.
pub fn is_disk_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| full.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_finds_no_room_is_tried_again_in_the_room_that_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        establish(dir.path()).unwrap();
        let kept = || dir.path().join(FILE).metadata().map_or(0, |file| file.blocks() * 512);
        assert!(kept() >= RESERVE_BYTES);
        let done = with_room(dir.path(), || match kept() {
            0 => Ok("done"),
            _ => Err(io::Error::from(Errno::NOSPC)),
        });
        assert_eq!(done.unwrap(), "done");
        assert!(kept() >= RESERVE_BYTES, "and there it is again");
        let refused =
            with_room(dir.path(), || Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
