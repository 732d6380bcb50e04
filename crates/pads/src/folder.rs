//! The pads' folder: its files are read whole, replaced atomically, and never reached through a
//! link.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::digest::Digest;
use crate::name::PadName;
use patterm_store::state::{StateError, failed};

/// The mode of a new pad: like everything in the state folder, only its owner may read it.
const MODE: u32 = 0o600;

/// The pads' folder. Files in it are opened relative to its descriptor, by plain names.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// The content of a pad's file.
#[derive(Debug)]
pub(crate) struct Content {
    /// All of it, or the beginning if the file is too large.
    pub(crate) bytes: Vec<u8>,
    /// The file's size.
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    pub(crate) stamp: Stamp,
    mode: u32,
}

/// Metadata that changes with a file's content, as far as the clock's resolution allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// When the content last changed, in milliseconds since 1970.
    pub(crate) fn modified_ms(&self) -> u64 {
        milliseconds(self.modified)
    }

    /// When the content or the metadata last changed; no program can set this.
    pub(crate) fn changed_ms(&self) -> u64 {
        milliseconds(self.changed)
    }
}

fn milliseconds((seconds, nanoseconds): (i64, i64)) -> u64 {
    let all = seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000);
    u64::try_from(all).unwrap_or(0)
}

/// Whether new content replaced a pad.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It did, and is on disk.
    Yes,
    /// Somebody else changed the pad in the meantime, and their content was kept.
    Changed,
}

impl Folder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn ensure(&self) -> Result<(), StateError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(failed("make", &self.0))
    }

    pub(crate) fn file(&self, name: &PadName) -> PathBuf {
        self.0.join(name.file())
    }

    /// The existing pads, sorted, and those with an unfinished new file. Links and folders
    /// are not pads.
    pub(crate) fn names(&self) -> Result<(Vec<PadName>, Vec<PadName>), StateError> {
        let (mut pads, mut new) = (Vec::new(), Vec::new());
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((pads, new)),
            Err(e) => return Err(failed("list", &self.0)(e)),
        };
        for entry in entries {
            let entry = entry.map_err(failed("list", &self.0))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let file = entry.file_name();
            let Some(file) = file.to_str() else { continue };
            pads.extend(PadName::of_file(file));
            new.extend(PadName::of_new_file(file));
        }
        pads.sort_unstable();
        Ok((pads, new))
    }

    /// The metadata of a pad's file; `None` if it does not exist.
    pub(crate) fn stamp(&self, name: &PadName) -> io::Result<Option<Stamp>> {
        let metadata = self.opened(&name.file())?.map(|file| file.metadata()).transpose()?;
        Ok(metadata.as_ref().map(Stamp::of))
    }

    /// The content of a pad; `None` if it does not exist.
    pub(crate) fn read(&self, name: &PadName, limit: usize) -> io::Result<Option<Content>> {
        self.read_file(&name.file(), limit)
    }

    /// The unfinished new content of a pad.
    pub(crate) fn read_new(&self, name: &PadName, limit: usize) -> io::Result<Option<Content>> {
        self.read_file(&name.new_file(), limit)
    }

    fn read_file(&self, file: &str, limit: usize) -> io::Result<Option<Content>> {
        let Some(mut file) = self.opened(file)? else { return Ok(None) };
        // Taken before reading, so that later writes produce another stamp.
        let metadata = file.metadata()?;
        let most = limit as u64 + 1;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.size().min(most)).unwrap_or(0));
        (&mut file).take(most).read_to_end(&mut bytes)?;
        let (size, digest) = match bytes.len() > limit {
            false => (bytes.len() as u64, Digest::of(&bytes)),
            true => (metadata.size(), Digest::of_beginning(&bytes, metadata.size())),
        };
        let mode = metadata.mode() & 0o777;
        Ok(Some(Content { bytes, size, digest, stamp: Stamp::of(&metadata), mode }))
    }

    /// Opens a regular file without blocking: a pipe could block forever.
    fn opened(&self, file: &str) -> io::Result<Option<File>> {
        let folder = match File::open(&self.0) {
            Ok(folder) => folder,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, file, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            // A link or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(not_a_regular_file()),
            Err(e) => return Err(e.into()),
        };
        match file.metadata()?.is_file() {
            true => Ok(Some(file)),
            false => Err(not_a_regular_file()),
        }
    }

    /// Writes new content to a file beside a pad, and syncs it. `before` is the content
    /// that it replaces.
    pub(crate) fn prepare(
        &self,
        name: &PadName,
        content: &[u8],
        before: Option<&Content>,
    ) -> io::Result<()> {
        self.discard(name)?;
        let prepared = self.write_new(name, content, before);
        if prepared.is_err() {
            // On a full disk, half a file would only make things worse.
            let _ = self.discard(name);
        }
        prepared
    }

    fn write_new(
        &self,
        name: &PadName,
        content: &[u8],
        before: Option<&Content>,
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(MODE);
        let file = openat(File::open(&self.0)?, name.new_file(), flags, mode)?;
        let mut file = File::from(file);
        file.write_all(content)?;
        if let Some(before) = before {
            // Keep the access that a person granted.
            file.set_permissions(Permissions::from_mode(before.mode))?;
        }
        file.sync_all()
    }

    /// Moves the prepared content into place, if the pad is unchanged: still `before`, or
    /// still missing.
    ///
    /// The two files are exchanged, so that the replaced one is still available: if a
    /// person saved the pad since it was read, it is put back. One case remains: an editor
    /// that opened the old file before the exchange and writes to it after the last check
    /// writes to an unlinked file, as with any atomic replacement.
    pub(crate) fn place(&self, name: &PadName, before: Option<&Content>) -> io::Result<Placed> {
        let placed = match before {
            None => self.create(name)?,
            Some(before) => self.replace(name, before)?,
        };
        // A leftover is removed by the next write or the next server.
        let _ = self.discard(name);
        Ok(placed)
    }

    /// Gives a new file its name, if that is free.
    fn create(&self, name: &PadName) -> io::Result<Placed> {
        let folder = File::open(&self.0)?;
        let (new, pad) = (name.new_file(), name.file());
        let created = match renameat_with(&folder, &new, &folder, &pad, RenameFlags::NOREPLACE) {
            Err(e) if is_unsupported(e) => linkat(&folder, &new, &folder, &pad, AtFlags::empty()),
            renamed => renamed,
        };
        match created {
            Ok(()) => folder.sync_all().map(|()| Placed::Yes),
            Err(Errno::EXIST) => Ok(Placed::Changed),
            Err(e) => Err(e.into()),
        }
    }

    fn replace(&self, name: &PadName, before: &Content) -> io::Result<Placed> {
        let folder = File::open(&self.0)?;
        let (new, pad) = (name.new_file(), name.file());
        // Preparing took time. This check makes it rare that anything has to be put back below.
        if !self.holds(&pad, before) {
            return Ok(Placed::Changed);
        }
        match renameat_with(&folder, &new, &folder, &pad, RenameFlags::EXCHANGE) {
            Ok(()) => folder.sync_all()?,
            Err(Errno::NOENT) => return Ok(Placed::Changed),
            // The file system cannot exchange files: the check above has to be enough.
            Err(e) if is_unsupported(e) => {
                std::fs::rename(self.0.join(new), self.0.join(pad))?;
                return folder.sync_all().map(|()| Placed::Yes);
            }
            Err(e) => return Err(e.into()),
        }
        if self.holds(&new, before) {
            return Ok(Placed::Yes);
        }
        self.put_back(name).map(|()| Placed::Changed)
    }

    /// Removes a pad, if it is unchanged.
    ///
    /// It is renamed first, so that the file that is checked is the one that is removed: if
    /// a person saved the pad since it was read, it is put back.
    pub(crate) fn remove(&self, name: &PadName, before: &Content) -> io::Result<Placed> {
        self.discard(name)?;
        let folder = File::open(&self.0)?;
        let (aside, pad) = (name.new_file(), name.file());
        match rustix::fs::renameat(&folder, &pad, &folder, &aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Placed::Changed),
            Err(e) => return Err(e.into()),
        }
        if !self.holds(&aside, before) {
            return self.put_back(name).map(|()| Placed::Changed);
        }
        self.discard(name)?;
        folder.sync_all().map(|()| Placed::Yes)
    }

    /// Whether a file still has this content.
    fn holds(&self, file: &str, before: &Content) -> bool {
        let content = self.read_file(file, before.bytes.len());
        matches!(content, Ok(Some(content)) if content.digest == before.digest)
    }

    /// Restores the file that an exchange replaced.
    pub(crate) fn put_back(&self, name: &PadName) -> io::Result<()> {
        std::fs::rename(self.0.join(name.new_file()), self.file(name))?;
        File::open(&self.0)?.sync_all()
    }

    /// Removes the prepared content.
    pub(crate) fn discard(&self, name: &PadName) -> io::Result<()> {
        match unlinkat(File::open(&self.0)?, name.new_file(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Whether a file system does not support a way of renaming.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// The error for something that exists but is not a regular file.
fn not_a_regular_file() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

/// Whether an error is [`not_a_regular_file`].
pub(crate) fn is_not_a_regular_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none()
}
