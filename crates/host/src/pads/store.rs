//! Reading, writing, appending and listing pads, one at a time.

use std::io;
use std::path::PathBuf;

use super::FOLDER;
use super::error::PadError;
use super::folder::{Content, Folder, Placed, is_no_plain_file};
use super::index::{Change, Found, Index};
use super::name::PadName;
use patterm_store::clock::now_ms;
use patterm_store::limits::Limits;
use patterm_store::state::{self, StateDir, StateError};

const INDEX: &str = "scratchpads.json";
const VERSION: u32 = 1;

/// How often an append begins again because a person saved the pad at that very moment.
const TRIES: u32 = 10;

/// The pads of a project. What it says was written is on the disk.
#[derive(Debug)]
pub struct Pads {
    folder: Folder,
    index_file: PathBuf,
    pub(super) index: Index,
    most_pads: usize,
    most_bytes: usize,
}

/// A pad's revision, and who made it when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// What to name when writing.
    pub revision: String,
    /// Bytes of the content.
    pub bytes: u64,
    /// When, in milliseconds since 1970.
    pub changed_at: u64,
    /// By whom.
    pub changed_by: String,
}

impl From<Change> for Revision {
    fn from(change: Change) -> Self {
        Self {
            revision: change.revision(),
            bytes: change.bytes,
            changed_at: change.changed_at,
            changed_by: change.changed_by,
        }
    }
}

/// A pad that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    /// What it says.
    pub content: String,
    /// Which revision that is.
    pub revision: Revision,
}

/// A list of pads.
#[derive(Debug, Default)]
pub struct Listed {
    /// By name.
    pub pads: Vec<(PadName, Revision)>,
    /// How many there are beyond what is listed.
    pub more: usize,
}

impl Pads {
    /// Reads what earlier servers of this project left.
    pub(super) fn load(state: &StateDir, limits: &Limits) -> Result<Self, StateError> {
        let index_file = state.file(INDEX);
        let index = state::read(&index_file, VERSION)?.unwrap_or_default();
        let folder = Folder::at(state.file(FOLDER));
        let (most_pads, most_bytes) = (limits.pads, limits.pad_bytes);
        let pads = Self { folder, index_file, index, most_pads, most_bytes };
        pads.clear_up();
        Ok(pads)
    }

    /// Removes what a server that died had not put into its place. What it took out of a pad without
    /// knowing it is put back.
    fn clear_up(&self) {
        let left = self.folder.names().map(|(_, new)| new).unwrap_or_else(|error| {
            tracing::error!(%error, "the scratchpads cannot be listed");
            Vec::new()
        });
        for name in left {
            let pad = self.folder.read(&name, self.most_bytes);
            let new = self.folder.read_new(&name, self.most_bytes);
            let taken = match (pad, new) {
                (Ok(Some(pad)), Ok(Some(new))) => {
                    self.index.took_out(&name, &pad.digest, &new.digest)
                }
                // It was being removed.
                (Ok(None), Ok(Some(_))) => !self.index.intends(&name),
                _ => false,
            };
            let cleared = match taken {
                true => self.folder.put_back(&name),
                false => self.folder.discard(&name),
            };
            if let Err(error) = cleared {
                tracing::error!(%name, %error, "an unfinished scratchpad is left");
            }
        }
    }

    /// What a pad says, and which revision that is.
    pub fn read(&mut self, name: &PadName) -> Result<Pad, PadError> {
        let Some((content, change)) = self.look(name)? else {
            let others = self.folder.names()?.0;
            return Err(PadError::NotFound { name: name.clone(), others });
        };
        let content = String::from_utf8(self.whole(name, content)?.bytes).map_err(|e| {
            PadError::NoText { name: name.clone(), at: e.utf8_error().valid_up_to() }
        })?;
        Ok(Pad { content, revision: change.into() })
    }

    /// Replaces a pad that is at a revision; without one, makes a new pad.
    pub fn write(
        &mut self,
        name: &PadName,
        content: &str,
        expected: Option<&str>,
        by: &str,
    ) -> Result<Revision, PadError> {
        self.check_size(name, content.len())?;
        let before = self.expect(name, expected)?;
        match self.put(name, content.as_bytes(), before.as_ref(), by)? {
            Some(revision) => Ok(revision),
            // Somebody was faster. Whatever it is now, it is not what was expected.
            None => match self.expect(name, expected) {
                Ok(_) => Err(PadError::Busy(name.clone())),
                Err(error) => Err(error),
            },
        }
    }

    /// What stands where something is to be written, if that is as the writer expects it.
    fn expect(
        &mut self,
        name: &PadName,
        expected: Option<&str>,
    ) -> Result<Option<Content>, PadError> {
        let found = self.look(name)?.map(|(content, change)| (content, Revision::from(change)));
        match (found, expected) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(PadError::Gone(name.clone())),
            (Some((_, current)), None) => Err(PadError::Exists { name: name.clone(), current }),
            (Some((content, current)), Some(expected)) if current.revision == expected => {
                self.whole(name, content).map(Some)
            }
            (Some((_, current)), Some(expected)) => {
                let (name, expected) = (name.clone(), expected.to_owned());
                Err(PadError::Changed { name, expected, current })
            }
        }
    }

    /// Removes a pad that is at a revision. What was in it is gone.
    pub fn delete(&mut self, name: &PadName, expected: &str) -> Result<(), PadError> {
        let removed = self.remove(name, expected);
        removed.map_err(|e| e.of_removal(self.folder.names().unwrap_or_default().0))
    }

    fn remove(&mut self, name: &PadName, expected: &str) -> Result<(), PadError> {
        let Some(before) = self.expect(name, Some(expected))? else {
            return Err(PadError::Gone(name.clone()));
        };
        // Without an intention to write it: whenever we die, the next server finds what is left of it
        // and puts it back. It takes something away, so there is room for it on a full disk.
        state::write_reserved(&self.index_file, VERSION, &self.index)?;
        match self.folder.remove(name, &before).map_err(failed("remove", name))? {
            Placed::Yes => {
                self.index.forget(name);
                self.save_what_was_noticed();
                Ok(())
            }
            // Somebody was faster. Whatever it is now, it is not what was expected.
            Placed::Changed => match self.expect(name, Some(expected)) {
                Ok(_) => Err(PadError::Busy(name.clone())),
                Err(error) => Err(error),
            },
        }
    }

    /// Adds to the end of a pad, whatever it says by now; makes it where there is none.
    pub fn append(
        &mut self,
        name: &PadName,
        content: &str,
        by: &str,
    ) -> Result<Revision, PadError> {
        for _ in 0..TRIES {
            let before = match self.look(name)? {
                Some((before, _)) => Some(self.whole(name, before)?),
                None => None,
            };
            let old = before.as_ref().map_or(&[][..], |before| &before.bytes);
            self.check_size(name, old.len() + content.len())?;
            let all = [old, content.as_bytes()].concat();
            if let Some(revision) = self.put(name, &all, before.as_ref(), by)? {
                return Ok(revision);
            }
        }
        Err(PadError::Busy(name.clone()))
    }

    /// All pads. Those that look as they did when they were last read are not read again.
    pub fn list(&mut self) -> Result<Listed, PadError> {
        let (names, _) = self.folder.names()?;
        self.index.keep_only(&names);
        let mut listed = Listed::default();
        let mut any_news = false;
        for name in names.iter().take(self.most_pads) {
            let stamp = self.folder.stamp(name).unwrap_or_default();
            if let Some(change) = stamp.and_then(|stamp| self.index.unchanged(name, &stamp)) {
                listed.pads.push((name.clone(), change.into()));
                continue;
            }
            // One that cannot be read, or went away just now, does not hide the others.
            if let Ok(Some((_, change, news))) = self.look_unsaved(name) {
                listed.pads.push((name.clone(), change.into()));
                any_news |= news;
            }
        }
        listed.more = names.len().saturating_sub(self.most_pads);
        if any_news {
            self.save_what_was_noticed();
        }
        Ok(listed)
    }

    /// What a pad holds and is.
    fn look(&mut self, name: &PadName) -> Result<Option<(Content, Change)>, PadError> {
        let found = self.look_unsaved(name)?;
        if found.as_ref().is_some_and(|(.., news)| *news) {
            self.save_what_was_noticed();
        }
        Ok(found.map(|(content, change, _)| (content, change)))
    }

    fn look_unsaved(
        &mut self,
        name: &PadName,
    ) -> Result<Option<(Content, Change, bool)>, PadError> {
        let content = self.folder.read(name, self.most_bytes).map_err(failed("read", name))?;
        let Some(content) = content else {
            self.index.forget(name);
            return Ok(None);
        };
        let Content { size: bytes, digest, stamp, .. } = &content;
        let found = Found { digest, bytes: *bytes, stamp, at: now_ms() };
        let (change, news) = self.index.observe(name, &found);
        self.index.keep_youngest(self.most_pads, name);
        Ok(Some((content, change, news)))
    }

    /// An edit from outside is there whether or not we can write down that we saw it: a full disk must
    /// not keep anybody from reading. Its revision names its content, so that nothing is confused.
    fn save_what_was_noticed(&self) {
        let saved = state::write_reserved(&self.index_file, VERSION, &self.index);
        if let Err(error) = saved {
            tracing::error!(%error, "an edit of a scratchpad is not written down yet");
        }
    }

    pub(super) fn save(&self) -> Result<(), StateError> {
        state::write(&self.index_file, VERSION, &self.index)
    }

    /// Writes a content where `before` stands; `None` if that changed meanwhile. The intention is on
    /// the disk before the content: whenever we die, the next server finds in the file which of the
    /// two it is, and knows of either whose it is.
    fn put(
        &mut self,
        name: &PadName,
        content: &[u8],
        before: Option<&Content>,
        by: &str,
    ) -> Result<Option<Revision>, PadError> {
        self.folder.ensure()?;
        if before.is_none() {
            self.check_room()?;
        }
        self.index.intend(name, content, by, now_ms());
        if let Err(error) = self.save() {
            self.index.abandon(name);
            return Err(error.into());
        }
        let prepared = self.folder.prepare(name, content, before);
        // From here on only the file itself says whether it happened; the next look at it will.
        let placed = prepared.and_then(|()| self.folder.place(name, before));
        match placed.map_err(failed("write", name))? {
            Placed::Yes => Ok(self.index.settle(name).map(Revision::from)),
            Placed::Changed => {
                self.index.abandon(name);
                Ok(None)
            }
        }
    }

    fn check_room(&self) -> Result<(), PadError> {
        match self.folder.names()?.0.len() < self.most_pads {
            true => Ok(()),
            false => Err(PadError::Full(self.most_pads)),
        }
    }

    fn check_size(&self, name: &PadName, bytes: usize) -> Result<(), PadError> {
        if bytes <= self.most_bytes {
            return Ok(());
        }
        let (bytes, limit) = (bytes as u64, self.most_bytes);
        Err(PadError::TooLarge { name: name.clone(), bytes, limit })
    }

    /// The content, if all of it was read.
    fn whole(&self, name: &PadName, content: Content) -> Result<Content, PadError> {
        if content.bytes.len() <= self.most_bytes {
            return Ok(content);
        }
        let (bytes, limit) = (content.size, self.most_bytes);
        Err(PadError::FileTooLarge { name: name.clone(), bytes, limit })
    }
}

fn failed(what: &'static str, name: &PadName) -> impl FnOnce(io::Error) -> PadError {
    let name = name.clone();
    move |source| match is_no_plain_file(&source) {
        true => PadError::NoFile(name),
        false => PadError::Io { what, name, source },
    }
}
