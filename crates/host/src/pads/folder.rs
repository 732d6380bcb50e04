//! The folder of the pads: files that are read whole, put into place in one step, and never reached
//! through a link.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::digest::Digest;
use super::name::PadName;
use patterm_store::state::{StateError, failed};

/// Only its owner reads a pad that patterm made, as with everything in the state folder.
const MODE: u32 = 0o600;

/// The pads' folder. Everything in it is reached from its descriptor, by plain names.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

/// What a pad's file holds.
#[derive(Debug)]
pub(super) struct Content {
    /// All of it; of a file that is too large, the beginning.
    pub(super) bytes: Vec<u8>,
    /// The file's size.
    pub(super) size: u64,
    pub(super) digest: Digest,
    pub(super) stamp: Stamp,
    mode: u32,
}

/// What changes with a file's content, as far as the clock is fine enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
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

    /// When its content was last changed, in milliseconds since 1970.
    pub(super) fn modified_ms(&self) -> u64 {
        milliseconds(self.modified)
    }

    /// When anything about it was last changed; nobody can set this.
    pub(super) fn changed_ms(&self) -> u64 {
        milliseconds(self.changed)
    }
}

fn milliseconds((seconds, nanoseconds): (i64, i64)) -> u64 {
    let all = seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000);
    u64::try_from(all).unwrap_or(0)
}

/// Whether a new content came into its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// It did, and is on the disk.
    Yes,
    /// Somebody else changed the pad meanwhile. Theirs stands.
    Changed,
}

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn ensure(&self) -> Result<(), StateError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(failed("make", &self.0))
    }

    pub(super) fn file(&self, name: &PadName) -> PathBuf {
        self.0.join(name.file())
    }

    /// The pads there are, by name, and what was never put into its place. Links and folders are
    /// no pads.
    pub(super) fn names(&self) -> Result<(Vec<PadName>, Vec<PadName>), StateError> {
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

    /// What a pad's file looks like from outside; `None` if there is none.
    pub(super) fn stamp(&self, name: &PadName) -> io::Result<Option<Stamp>> {
        let metadata = self.opened(&name.file())?.map(|file| file.metadata()).transpose()?;
        Ok(metadata.as_ref().map(Stamp::of))
    }

    /// What a pad holds; `None` if there is none.
    pub(super) fn read(&self, name: &PadName, limit: usize) -> io::Result<Option<Content>> {
        self.read_file(&name.file(), limit)
    }

    /// What was written for it and not put into its place.
    pub(super) fn read_new(&self, name: &PadName, limit: usize) -> io::Result<Option<Content>> {
        self.read_file(&name.new_file(), limit)
    }

    fn read_file(&self, file: &str, limit: usize) -> io::Result<Option<Content>> {
        let Some(mut file) = self.opened(file)? else { return Ok(None) };
        // Before it is read: what is written from here on makes another stamp.
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

    /// A plain file, opened without waiting for anybody: a pipe could make us wait forever.
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
            // A link, a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(no_plain_file()),
            Err(e) => return Err(e.into()),
        };
        match file.metadata()?.is_file() {
            true => Ok(Some(file)),
            false => Err(no_plain_file()),
        }
    }

    /// Writes a new content beside a pad, onto the disk. `before` is what it is to replace.
    pub(super) fn prepare(
        &self,
        name: &PadName,
        content: &[u8],
        before: Option<&Content>,
    ) -> io::Result<()> {
        self.discard(name)?;
        let prepared = self.write_new(name, content, before);
        if prepared.is_err() {
            // On a full disk half a file would only make it worse.
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
            // Whom a person let read it may go on reading.
            file.set_permissions(Permissions::from_mode(before.mode))?;
        }
        file.sync_all()
    }

    /// Puts what was prepared into its place, if the pad still is what it was: `before`, or not there.
    ///
    /// The two files change places, so that what stood there last is still in our hands: had a person
    /// saved the pad since we looked, that is seen and put back. What remains is an editor that opened
    /// the old file before the exchange and writes into it only after our last look: it writes into a
    /// file without a name, as with any way of replacing files whole.
    pub(super) fn place(&self, name: &PadName, before: Option<&Content>) -> io::Result<Placed> {
        let placed = match before {
            None => self.create(name)?,
            Some(before) => self.replace(name, before)?,
        };
        // What is left of it would be removed with the next write, or by the next server.
        let _ = self.discard(name);
        Ok(placed)
    }

    /// Gives a new file its name, if nobody has that.
    fn create(&self, name: &PadName) -> io::Result<Placed> {
        let folder = File::open(&self.0)?;
        let (new, pad) = (name.new_file(), name.file());
        let created = match renameat_with(&folder, &new, &folder, &pad, RenameFlags::NOREPLACE) {
            Err(e) if is_unknown(e) => linkat(&folder, &new, &folder, &pad, AtFlags::empty()),
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
        // Preparing took its time. With this look, hardly ever is anything put back below.
        if !self.holds(&pad, before) {
            return Ok(Placed::Changed);
        }
        match renameat_with(&folder, &new, &folder, &pad, RenameFlags::EXCHANGE) {
            Ok(()) => folder.sync_all()?,
            Err(Errno::NOENT) => return Ok(Placed::Changed),
            // A file system that cannot exchange: the look above is all there is.
            Err(e) if is_unknown(e) => {
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

    /// Removes a pad, if it still is what it was.
    ///
    /// It is moved aside first, so that what is removed is what was looked at: had a person saved the
    /// pad since, that is seen and put back.
    pub(super) fn remove(&self, name: &PadName, before: &Content) -> io::Result<Placed> {
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

    /// Whether a file holds what it held before.
    fn holds(&self, file: &str, before: &Content) -> bool {
        let content = self.read_file(file, before.bytes.len());
        matches!(content, Ok(Some(content)) if content.digest == before.digest)
    }

    /// Gives a pad what an exchange took out of it.
    pub(super) fn put_back(&self, name: &PadName) -> io::Result<()> {
        std::fs::rename(self.0.join(name.new_file()), self.file(name))?;
        File::open(&self.0)?.sync_all()
    }

    /// Removes what was prepared.
    pub(super) fn discard(&self, name: &PadName) -> io::Result<()> {
        match unlinkat(File::open(&self.0)?, name.new_file(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Whether a file system does not know a way of renaming.
fn is_unknown(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// The error that means: there is something, but no plain file.
fn no_plain_file() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

/// Whether an error means that.
pub(super) fn is_no_plain_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none()
}
