//! Watches folders for changes through inotify.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Room for a few dozen events in one read.
const EVENT_BYTES: usize = 4 << 10;

/// A change in a folder.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// A file was changed, created or removed.
    File(PathBuf),
    /// A folder was created or removed.
    Folder(PathBuf),
    /// The kernel dropped events, so anything may have changed.
    Unknown,
}

/// The folders that are watched.
#[derive(Debug)]
pub struct Folders {
    fd: AsyncFd<OwnedFd>,
    watched: HashMap<i32, PathBuf>,
}

impl Folders {
    /// Watches no folder yet; needs the runtime.
    pub fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "the other one is unsafe for types that may lie about their descriptor; an \
                OwnedFd keeps its own"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self { fd, watched: HashMap::new() })
    }

    /// Watches a folder, but not its subfolders.
    fn add(&mut self, folder: &Path) -> io::Result<()> {
        let what = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let watch = inotify::add_watch(self.fd.get_ref(), folder, what)?;
        self.watched.insert(watch, folder.to_owned());
        Ok(())
    }

    /// Watches these folders and no others.
    pub fn set(&mut self, folders: &[PathBuf]) -> io::Result<()> {
        let wanted: HashSet<_> = folders.iter().collect();
        let gone: Vec<_> = self
            .watched
            .iter()
            .filter(|(_, folder)| !wanted.contains(folder))
            .map(|(watch, _)| *watch)
            .collect();
        for watch in gone {
            let _ = inotify::remove_watch(self.fd.get_ref(), watch);
            self.watched.remove(&watch);
        }
        // One that cannot be watched keeps no other from being watched.
        folders.iter().map(|folder| self.add(folder)).fold(Ok(()), io::Result::and)
    }

    /// Waits for changes, and returns all of them.
    pub async fn changed(&mut self) -> io::Result<Vec<Change>> {
        loop {
            let mut ready = self.fd.readable_mut().await?;
            let mut changes = Vec::new();
            let (fd, watched) = (ready.get_inner(), &mut self.watched);
            if !read_all(fd, watched, &mut changes)? {
                ready.clear_ready();
            }
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }
}

/// Reads events; `false` once there are none.
fn read_all(
    fd: &OwnedFd,
    watched: &mut HashMap<i32, PathBuf>,
    changes: &mut Vec<Change>,
) -> io::Result<bool> {
    let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
    let mut reader = Reader::new(fd, &mut buffer);
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(Change::Unknown);
            continue;
        }
        if event.events().contains(ReadFlags::IGNORED) {
            // The folder was removed.
            if let Some(folder) = watched.remove(&event.wd()) {
                changes.push(Change::Folder(folder));
            }
            continue;
        }
        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
        let (Some(folder), Some(name)) = (watched.get(&event.wd()), name) else { continue };
        let path = folder.join(name);
        changes.push(match event.events().contains(ReadFlags::ISDIR) {
            true => Change::Folder(path),
            false => Change::File(path),
        });
    }
}
