//! Private folders and files, which no other user can have created: a folder is used only if we
//! own it and others have no access; a file in it is opened without following a link and
//! without blocking, and read up to a limit.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, statat, unlinkat};
use thiserror::Error;

/// The mode of new files: only the owner has access.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Permissions of anybody but the owner.
const OF_OTHERS: u32 = 0o077;

/// The largest settings file that is read: far more than a person writes.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Why a folder or a file is not used.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another user may have created or changed it.
    #[error("{0}")]
    NotOurs(&'static str),
}

impl Refusal {
    /// Whether the file or folder does not exist.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Io(e) if e.kind() == io::ErrorKind::NotFound)
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Io(error) => error,
            Refusal::NotOurs(why) => Self::other(why),
        }
    }
}

/// A folder that was private when it was opened. All operations apply to that folder, even if
/// its path leads elsewhere by now.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    folder: File,
}

impl PrivateDir {
    /// Opens a folder for reading, if it exists, is ours, and others have no access.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let (opened, mode) = Self::open_own(path, OFlags::NOFOLLOW)?;
        match mode & OF_OTHERS {
            0 => Ok(opened),
            _ => Err(Refusal::NotOurs("others may read or change it")),
        }
    }

    /// Opens a folder of ours for writing. If others have gained access to it, that access
    /// is removed: refusing to write would lose state.
    pub fn open_to_write(path: &Path) -> Result<Self, Refusal> {
        Self::close(Self::open_own(path, OFlags::NOFOLLOW)?)
    }

    /// Creates a folder if necessary, and removes the access of others if it is ours.
    pub fn make(path: &Path) -> Result<Self, Refusal> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open_to_write(path)
    }

    /// Does the same for a folder that the user may have moved and replaced with a link.
    /// The user must own the link.
    pub(crate) fn make_behind_own_link(path: &Path) -> Result<Self, Refusal> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        if found.st_uid != own_uid() {
            return Err(Refusal::NotOurs("another user owns it"));
        }
        Self::close(Self::open_own(path, OFlags::empty())?)
    }

    fn close((opened, mode): (Self, u32)) -> Result<Self, Refusal> {
        if mode & 0o777 != 0o700 {
            opened.folder.set_permissions(PermissionsExt::from_mode(0o700))?;
        }
        Ok(opened)
    }

    /// Opens a folder of ours; returns it with its mode.
    fn open_own(path: &Path, flags: OFlags) -> Result<(Self, u32), Refusal> {
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match openat(CWD, path, flags, Mode::empty()) {
            Ok(folder) => File::from(folder),
            // Linux returns the first for a link, and the second for a file.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(Refusal::NotOurs("it is a link or a file"));
            }
            // The owner explains more than the missing permission.
            Err(rustix::io::Errno::ACCESS) if is_foreign(path) => {
                return Err(Refusal::NotOurs("another user owns it"));
            }
            Err(errno) => return Err(errno.into()),
        };
        let meta = folder.metadata()?;
        if meta.uid() != own_uid() {
            return Err(Refusal::NotOurs("another user owns it"));
        }
        Ok((Self { path: path.to_owned(), folder }, meta.mode()))
    }

    /// The path at which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of everything in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        self.some_names(usize::MAX)
    }

    /// The names of at most so many files in it, whichever come first.
    pub fn some_names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let entries = Dir::read_from(&self.folder)?;
        let name =
            |entry: rustix::fs::DirEntry| OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let is_inside = |name: &OsString| name != "." && name != "..";
        let names = entries.map(|entry| Ok(name(entry?)));
        names.filter(|name| name.as_ref().map_or(true, is_inside)).take(most).collect()
    }

    /// Reads a regular file of ours with at most `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Refusal> {
        read_at_most(&self.file(name)?, most)
    }

    /// Opens a regular file of ours for reading.
    pub fn file(&self, name: &str) -> Result<File, Refusal> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::LOOP) => return Err(Refusal::NotOurs("it is a link")),
            Err(errno) => return Err(errno.into()),
        };
        check_own_file(&file)?;
        Ok(file)
    }

    /// Opens a file to lock it; creates it if necessary.
    pub fn lock_file(&self, name: &str) -> Result<File, Refusal> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, name, flags, OWNER_ONLY)?);
        check_own_file(&file)?;
        Ok(file)
    }

    /// Replaces a file's content atomically; it is on disk when this returns.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write_in(&self.folder, name, content)
    }

    /// Removes a file.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name.as_ref(), AtFlags::empty())?)
    }
}

/// Replaces the content of a file in an open folder atomically. Never writes through a link,
/// neither at the file's name nor at the temporary name.
pub(crate) fn write_in(folder: &File, name: &str, content: &[u8]) -> io::Result<()> {
    let new = format!("{name}.{}.new", std::process::id());
    // An earlier process with our id may have died here.
    let _ = unlinkat(folder, new.as_str(), AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = (|| {
        let mut file = File::from(openat(folder, new.as_str(), flags, OWNER_ONLY)?);
        file.write_all(content)?;
        file.sync_all()?;
        renameat(folder, new.as_str(), folder, name)?;
        folder.sync_all()
    })();
    if written.is_err() {
        let _ = unlinkat(folder, new.as_str(), AtFlags::empty());
    }
    written
}

/// Reads a secret that only we can have written and only we can read. It may be behind a link:
/// whoever made the link could have given the file's path instead.
pub fn read_secret(path: &Path, most: u64) -> Result<(Vec<u8>, u32), Refusal> {
    let file = open_without_waiting(path)?;
    check_own_file(&file)?;
    let mode = file.metadata()?.mode() & 0o777;
    Ok((read_at_most(&file, most)?, mode))
}

/// Reads a settings file: a regular file, owned by us or root, and not world-writable. It may
/// be behind a link, as on some systems.
pub fn read_settings(path: &Path) -> Result<String, Refusal> {
    const WORLD_WRITABLE: u32 = 0o002;
    let file = open_without_waiting(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Refusal::NotOurs("it is not a regular file"));
    }
    if meta.uid() != own_uid() && meta.uid() != 0 {
        return Err(Refusal::NotOurs("another user owns it; settings must be your own"));
    }
    if meta.mode() & WORLD_WRITABLE != 0 {
        return Err(Refusal::NotOurs("everybody may write to it; run `chmod o-w` on it"));
    }
    let bytes = read_at_most(&file, SETTINGS_BYTES)?;
    String::from_utf8(bytes).map_err(|_| Refusal::NotOurs("it is not UTF-8 text"))
}

/// Reads a regular file of at most `most` bytes, whoever owns it; links are followed.
pub fn read_regular(path: &Path, most: u64) -> Result<Vec<u8>, Refusal> {
    let file = open_without_waiting(path)?;
    match file.metadata()?.is_file() {
        true => read_at_most(&file, most),
        false => Err(Refusal::NotOurs("it is not a regular file")),
    }
}

/// Whether something exists at a path and another user owns it.
fn is_foreign(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| found.st_uid != own_uid())
}

/// The user id of this process.
pub fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

fn open_without_waiting(path: &Path) -> Result<File, Refusal> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(openat(CWD, path, flags, Mode::empty())?))
}

fn check_own_file(file: &File) -> Result<(), Refusal> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Refusal::NotOurs("it is not a regular file"));
    }
    if meta.uid() != own_uid() {
        return Err(Refusal::NotOurs("another user owns it"));
    }
    Ok(())
}

fn read_at_most(file: &File, most: u64) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Refusal::NotOurs("it is too large"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused<T>(outcome: Result<T, Refusal>) -> String {
        outcome.err().map(|refusal| refusal.to_string()).unwrap_or_default()
    }

    #[test]
    fn only_a_private_folder_is_opened() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("own");
        assert!(PrivateDir::open(&folder).unwrap_err().is_absence());
        PrivateDir::make(&folder).unwrap();
        PrivateDir::open(&folder).unwrap();
        for mode in [0o701, 0o740, 0o777] {
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(refused(PrivateDir::open(&folder)), "others may read or change it");
        }
        PrivateDir::make(&folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        let link = top.path().join("link");
        symlink(&folder, &link).unwrap();
        assert_eq!(refused(PrivateDir::open(&link)), "it is a link or a file");
        assert_eq!(refused(PrivateDir::make(&link)), "it is a link or a file");
        PrivateDir::make_behind_own_link(&link).unwrap();
        std::fs::write(top.path().join("file"), "").unwrap();
        assert_eq!(refused(PrivateDir::open(&top.path().join("file"))), "it is a link or a file");
    }

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read_and_nothing_is_written_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let folder = PrivateDir::make(top.path()).unwrap();
        folder.write("a", b"abc").unwrap();
        assert_eq!(folder.read("a", 3).unwrap(), b"abc");
        assert_eq!(refused(folder.read("a", 2)), "it is too large");
        symlink("a", top.path().join("link")).unwrap();
        assert_eq!(refused(folder.read("link", 9)), "it is a link");
        assert!(folder.lock_file("link").is_err());
        // Nobody writes into this pipe: opening it as a file would block forever.
        let pipe = top.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(refused(folder.read("pipe", 9)), "it is not a regular file");
        assert!(refused(read_settings(&pipe)).contains("not a regular file"));
        let victim = top.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let new = format!("b.{}.new", std::process::id());
        symlink(&victim, top.path().join(new)).unwrap();
        symlink(&victim, top.path().join("b")).unwrap();
        folder.write("b", b"new").unwrap();
        assert_eq!(folder.read("b", 9).unwrap(), b"new");
        assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
    }

    #[test]
    fn world_writable_settings_are_not_read() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("config.toml");
        std::fs::write(&file, "a = 1").unwrap();
        assert_eq!(read_settings(&file).unwrap(), "a = 1");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(refused(read_settings(&file)).contains("everybody may write to it"));
        assert!(read_settings(&top.path().join("none")).unwrap_err().is_absence());
    }
}
