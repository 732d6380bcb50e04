//! A small file that is read again when it changes, watched with inotify.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// A longer file is neither settings nor a layout.
const FILE_BYTES: u64 = 256 << 10;

/// Symbolic links that are followed.
const LINKS: usize = 8;

/// The file and its watch.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    path: PathBuf,
    watch: Option<OwnedFd>,
    /// The last content.
    last: Option<Result<String, String>>,
}

impl WatchedFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, watch: None, last: None }
    }

    /// Readable when something has changed where the file is, or would be.
    pub(crate) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Its text, or why it cannot be read, if that has changed. A missing file is an empty one.
    pub(crate) fn poll(&mut self) -> Option<Result<String, String>> {
        // Watched before it is read, so that no change is missed; and again each time, since editors replace
        // files and folders may be created.
        self.watch = watch(&self.path).ok();
        let now = read(&self.path);
        let changed = self.last.as_ref() != Some(&now);
        self.last = Some(now.clone());
        changed.then_some(now)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let about = match path.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(format!("cannot read {shown}: {error}")),
    };
    if !about.is_file() || about.len() > FILE_BYTES {
        return Err(format!("{shown} is too large, or not a file"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8 text"))
}

/// Watches the file's folder, and that of a link's target; if it does not exist yet, the nearest existing
/// parent.
fn watch(path: &Path) -> io::Result<OwnedFd> {
    let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let mut file = path.to_owned();
    for _ in 0..LINKS {
        add(&fd, &file)?;
        let Ok(target) = std::fs::read_link(&file) else { break };
        file = file.parent().unwrap_or(Path::new("/")).join(target);
    }
    Ok(fd)
}

fn add(fd: &OwnedFd, file: &Path) -> io::Result<()> {
    let coming = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
    let folder = file.parent().unwrap_or(Path::new("/"));
    if folder.is_dir() {
        let all = coming
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(fd, folder, all)?;
        return Ok(());
    }
    let nearest = || folder.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/"));
    let above = nearest();
    inotify::add_watch(fd, above, coming)?;
    // A folder that was created just before the watch would be missed.
    if nearest() == above { Ok(()) } else { add(fd, file) }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    /// Waits until something has changed where the file is.
    fn wait(file: &WatchedFile) {
        let mut watched = [PollFd::from_borrowed_fd(file.watched().unwrap(), PollFlags::IN)];
        poll(&mut watched, None).unwrap();
    }

    #[test]
    fn every_way_of_changing_the_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("config/patterm");
        let path = folder.join("tui.toml");
        let mut file = WatchedFile::new(path.clone());
        assert_eq!(file.poll(), Some(Ok(String::new())), "a missing file is empty");
        std::fs::create_dir_all(&folder).unwrap();
        wait(&file);
        assert_eq!(file.poll(), None);
        std::fs::write(&path, "one").unwrap();
        wait(&file);
        assert_eq!(file.poll(), Some(Ok("one".to_owned())));
        std::fs::write(folder.join("other"), "two").unwrap();
        std::fs::rename(folder.join("other"), &path).unwrap();
        wait(&file);
        assert_eq!(file.poll(), Some(Ok("two".to_owned())), "editors that rename");
        std::fs::remove_file(&path).unwrap();
        wait(&file);
        assert_eq!(file.poll(), Some(Ok(String::new())));
        let kept = dir.path().join("dotfiles");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("tui.toml"), "three").unwrap();
        std::os::unix::fs::symlink("../../dotfiles/tui.toml", &path).unwrap();
        wait(&file);
        assert_eq!(file.poll(), Some(Ok("three".to_owned())));
        std::fs::write(kept.join("tui.toml"), "four").unwrap();
        wait(&file);
        assert_eq!(file.poll(), Some(Ok("four".to_owned())), "through a link");
        std::fs::write(kept.join("tui.toml"), b"\xff").unwrap();
        wait(&file);
        assert!(file.poll().unwrap().unwrap_err().contains("not UTF-8"));
    }
}
