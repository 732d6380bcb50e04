//! Reading, writing, appending and listing pads, one at a time.

use std::io;
use std::path::PathBuf;

use crate::FOLDER;
use crate::error::PadError;
use crate::folder::{Content, Folder, Placed, is_not_a_regular_file};
use crate::index::{Change, FileState, Index, Revision};
use crate::name::PadName;
use crate::recorder::{PadRecorder, Way};
use patterm_events::EventLog;
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::state::{self, StateDir, StateError};

const INDEX: &str = "scratchpads.json";
const VERSION: u32 = 1;

/// How often an append starts again because a person saved the pad at the same moment.
const TRIES: u32 = 10;

/// The pads of a project. Every change is on disk before its result is returned.
#[derive(Debug)]
pub struct Pads {
    folder: Folder,
    index_file: PathBuf,
    pub(crate) index: Index,
    most_pads: usize,
    most_bytes: usize,
    clock: Clock,
    recorder: PadRecorder,
}

/// A pad's content and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PadContent {
    /// The text.
    pub content: String,
    /// Its revision.
    pub revision: Revision,
}

/// A list of pads.
#[derive(Debug, Default)]
pub struct PadList {
    /// Sorted by name.
    pub pads: Vec<(PadName, Revision)>,
    /// How many pads are not listed.
    pub more: usize,
}

impl Pads {
    /// Reads what earlier servers of this project left.
    pub(crate) fn load(
        state: &StateDir,
        limits: &Limits,
        clock: Clock,
    ) -> Result<Self, StateError> {
        let index_file = state.file(INDEX);
        let index = state::read(&index_file, VERSION)?.unwrap_or_default();
        let folder = Folder::at(state.file(FOLDER));
        let (most_pads, most_bytes) = (limits.pads, limits.pad_bytes);
        let recorder = PadRecorder::default();
        let pads = Self { folder, index_file, index, most_pads, most_bytes, clock, recorder };
        pads.remove_leftovers();
        Ok(pads)
    }

    /// Records all changes as events, and those that happened before without being recorded.
    pub(crate) fn record_in(&mut self, events: EventLog) {
        self.recorder = PadRecorder::new(events);
        let Ok((names, _)) = self.folder.names() else { return };
        self.recorder.keep_only(&names);
        let unsettled =
            self.index.unsettled(|name, number| self.recorder.is_recorded(name, number));
        for name in names.iter().filter(|name| unsettled.iter().any(|one| one == name.as_str())) {
            // A pad that cannot be read now is compared when it is read.
            let _ = self.observe(name);
        }
    }

    /// Removes the unfinished files of a server that died. Content that it replaced
    /// unchecked is put back.
    fn remove_leftovers(&self) {
        let left = self.folder.names().map(|(_, new)| new).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot list the scratchpads");
            Vec::new()
        });
        for name in left {
            let pad = self.folder.read(&name, self.most_bytes);
            let new = self.folder.read_new(&name, self.most_bytes);
            let taken = match (pad, new) {
                (Ok(Some(pad)), Ok(Some(new))) => {
                    self.index.replaced_an_edit(&name, &pad.digest, &new.digest)
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
                tracing::error!(%name, %error, "cannot clean up after an unfinished write to a scratchpad");
            }
        }
    }

    /// Reads a pad and its revision.
    pub fn read(&mut self, name: &PadName) -> Result<PadContent, PadError> {
        let Some((content, change)) = self.read_current(name)? else {
            let others = self.folder.names()?.0;
            return Err(PadError::NotFound { name: name.clone(), others });
        };
        let content = String::from_utf8(self.whole(name, content)?.bytes).map_err(|e| {
            PadError::NoText { name: name.clone(), at: e.utf8_error().valid_up_to() }
        })?;
        Ok(PadContent { content, revision: change.into() })
    }

    /// Replaces a pad that is at the expected revision; without one, creates a new pad.
    pub fn write(
        &mut self,
        name: &PadName,
        content: &str,
        expected: Option<&str>,
        by: &str,
    ) -> Result<Revision, PadError> {
        self.check_size(name, content.len())?;
        let before = self.expect(name, expected)?;
        match self.put(name, content.as_bytes(), before.as_ref(), by, Way::Written)? {
            Some(revision) => Ok(revision),
            // Another writer was faster. Its content is not the expected one.
            None => match self.expect(name, expected) {
                Ok(_) => Err(PadError::Busy(name.clone())),
                Err(error) => Err(error),
            },
        }
    }

    /// The content that a write is to replace, if it is at the expected revision.
    fn expect(
        &mut self,
        name: &PadName,
        expected: Option<&str>,
    ) -> Result<Option<Content>, PadError> {
        let found =
            self.read_current(name)?.map(|(content, change)| (content, Revision::from(change)));
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

    /// Removes a pad that is at the expected revision. Its content is lost.
    pub fn delete(&mut self, name: &PadName, expected: &str) -> Result<(), PadError> {
        let removed = self.remove(name, expected);
        removed.map_err(|e| e.of_removal(self.folder.names().unwrap_or_default().0))
    }

    fn remove(&mut self, name: &PadName, expected: &str) -> Result<(), PadError> {
        let Some(before) = self.expect(name, Some(expected))? else {
            return Err(PadError::Gone(name.clone()));
        };
        // No intention is recorded: if we die, the next server finds the renamed file
        // and puts it back. A removal frees space, so it may use the reserve on a full
        // disk.
        state::write_reserved(&self.index_file, VERSION, &self.index)?;
        match self.folder.remove(name, &before).map_err(failed("remove", name))? {
            Placed::Yes => {
                self.index.forget(name);
                self.save_observed();
                self.recorder.removed(name.as_str());
                Ok(())
            }
            // Another writer was faster. Its content is not the expected one.
            Placed::Changed => match self.expect(name, Some(expected)) {
                Ok(_) => Err(PadError::Busy(name.clone())),
                Err(error) => Err(error),
            },
        }
    }

    /// Appends to a pad, at any revision; creates it if it does not exist.
    pub fn append(
        &mut self,
        name: &PadName,
        content: &str,
        by: &str,
    ) -> Result<Revision, PadError> {
        for _ in 0..TRIES {
            let before = match self.read_current(name)? {
                Some((before, _)) => Some(self.whole(name, before)?),
                None => None,
            };
            let old = before.as_ref().map_or(&[][..], |before| &before.bytes);
            self.check_size(name, old.len() + content.len())?;
            let all = [old, content.as_bytes()].concat();
            if let Some(revision) = self.put(name, &all, before.as_ref(), by, Way::Appended)? {
                return Ok(revision);
            }
        }
        Err(PadError::Busy(name.clone()))
    }

    /// All pads. Those whose files have the same metadata as at the last read are not read again.
    pub fn list(&mut self) -> Result<PadList, PadError> {
        let (names, _) = self.folder.names()?;
        self.index.keep_only(&names);
        self.recorder.keep_only(&names);
        let mut listed = PadList::default();
        let mut any_news = false;
        for name in names.iter().take(self.most_pads) {
            let stamp = self.folder.stamp(name).unwrap_or_default();
            if let Some(change) = stamp.and_then(|stamp| self.index.unchanged(name, &stamp)) {
                listed.pads.push((name.clone(), change.into()));
                continue;
            }
            // A pad that cannot be read, or was just removed, does not hide the others.
            if let Ok(Some((_, change, news))) = self.observe(name) {
                listed.pads.push((name.clone(), change.into()));
                any_news |= news;
            }
        }
        listed.more = names.len().saturating_sub(self.most_pads);
        if any_news {
            self.save_observed();
        }
        Ok(listed)
    }

    /// The content of a pad, and its current change.
    fn read_current(&mut self, name: &PadName) -> Result<Option<(Content, Change)>, PadError> {
        let found = self.observe(name)?;
        if found.as_ref().is_some_and(|(.., news)| *news) {
            self.save_observed();
        }
        Ok(found.map(|(content, change, _)| (content, change)))
    }

    fn observe(&mut self, name: &PadName) -> Result<Option<(Content, Change, bool)>, PadError> {
        let content = self.folder.read(name, self.most_bytes).map_err(failed("read", name))?;
        let Some(content) = content else {
            self.index.forget(name);
            self.recorder.removed(name.as_str());
            return Ok(None);
        };
        let Content { size: bytes, digest, stamp, .. } = &content;
        let found = FileState { digest, bytes: *bytes, stamp, at: self.clock.wall_ms() };
        let (change, news) = self.index.observe(name, &found);
        self.recorder.found(name, &change);
        self.index.keep_youngest(self.most_pads, name);
        Ok(Some((content, change, news)))
    }

    /// Saves the index after an edit was observed. It only logs an error, because a full
    /// disk must not prevent reading; the revision contains the content's digest, so it
    /// stays unambiguous.
    fn save_observed(&self) {
        let saved = state::write_reserved(&self.index_file, VERSION, &self.index);
        if let Err(error) = saved {
            tracing::error!(%error, "cannot record an edit of a scratchpad yet");
        }
    }

    pub(crate) fn save(&self) -> Result<(), StateError> {
        state::write(&self.index_file, VERSION, &self.index)
    }

    /// Replaces `before` with new content; `None` if the pad changed in the meantime. The
    /// intention is saved before the content: if we die, the next server can tell from the
    /// file which of the two versions it has, and knows the author of both.
    fn put(
        &mut self,
        name: &PadName,
        content: &[u8],
        before: Option<&Content>,
        by: &str,
        way: Way,
    ) -> Result<Option<Revision>, PadError> {
        self.folder.ensure()?;
        if before.is_none() {
            self.check_room()?;
        }
        self.index.intend(name, content, by, self.clock.wall_ms());
        if let Err(error) = self.save() {
            self.index.abandon(name);
            return Err(error.into());
        }
        let prepared = self.folder.prepare(name, content, before);
        // From here on, only the file shows whether the write happened; the next read
        // will find out.
        let placed = prepared.and_then(|()| self.folder.place(name, before));
        match placed.map_err(failed("write", name))? {
            Placed::Yes => Ok(self.index.settle(name).map(|change| {
                self.recorder.changed(name, &change, way);
                Revision::from(change)
            })),
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

    /// The content, unless it is too large.
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
    move |source| match is_not_a_regular_file(&source) {
        true => PadError::NoFile(name),
        false => PadError::Io { what, name, source },
    }
}
