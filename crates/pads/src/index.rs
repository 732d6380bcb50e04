//! The revision and author of each pad's content. Numbers are unique in the project, so that a
//! pad that is removed and created again never repeats a revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::folder::Stamp;
use crate::name::PadName;

/// The author of a change that patterm did not make.
pub(crate) const EDITOR: &str = "a person's editor";

/// One change of a pad.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    number: u64,
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    /// In milliseconds since 1970.
    pub(crate) changed_at: u64,
    pub(crate) changed_by: String,
}

impl Change {
    /// The number of its revision, which grows with every change in the project.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The number and the content's digest, so that a revision never refers to different
    /// content, even if the machine stopped before the number of an observed edit was saved.
    pub(crate) fn revision(&self) -> String {
        format!("{}-{}", self.number, self.digest.short())
    }
}

/// What is known about a pad.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Entry {
    /// Its state when it was last read.
    current: Option<Change>,
    /// A write in progress. The file shows whether it was completed.
    intended: Option<Change>,
    /// The file's metadata at the last read, if it still identifies that content.
    #[serde(skip)]
    seen: Option<Stamp>,
}

/// All pads; the content of the index file.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Index {
    /// The highest number assigned so far.
    last: u64,
    pads: BTreeMap<String, Entry>,
}

/// The state of a file that was read.
pub(crate) struct FileState<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) bytes: u64,
    pub(crate) stamp: &'a Stamp,
    /// When it was read, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// How much older than the read a file's last change must be, so that its timestamps reveal the
/// next change: some file systems have a resolution of two seconds.
const COARSE_CLOCK_MS: u64 = 3_000;

impl Index {
    /// Records the state of a pad's file; returns its current change, and whether that is new.
    pub(crate) fn observe(&mut self, name: &PadName, found: &FileState<'_>) -> (Change, bool) {
        let number = self.last + 1;
        let entry = self.pads.entry(name.as_str().to_owned()).or_default();
        let is_old = found.stamp.changed_ms().saturating_add(COARSE_CLOCK_MS) < found.at;
        entry.seen = is_old.then(|| found.stamp.clone());
        let known = [entry.intended.take(), entry.current.take()].into_iter().flatten();
        if let Some(known) = known.into_iter().find(|change| change.digest == *found.digest) {
            entry.current = Some(known.clone());
            return (known, false);
        }
        let change = Change {
            number,
            digest: found.digest.clone(),
            bytes: found.bytes,
            changed_at: found.stamp.modified_ms(),
            changed_by: EDITOR.to_owned(),
        };
        entry.current = Some(change.clone());
        self.last = number;
        (change, true)
    }

    /// The current change of a pad, if its file's metadata is still that of the last read.
    pub(crate) fn unchanged(&self, name: &PadName, stamp: &Stamp) -> Option<Change> {
        let entry = self.pads.get(name.as_str())?;
        (entry.seen.as_ref() == Some(stamp)).then(|| entry.current.clone())?
    }

    /// Records a write that is about to happen.
    pub(crate) fn intend(&mut self, name: &PadName, content: &[u8], by: &str, now: u64) {
        self.last += 1;
        let change = Change {
            number: self.last,
            digest: Digest::of(content),
            bytes: content.len() as u64,
            changed_at: now,
            changed_by: by.to_owned(),
        };
        let entry = self.pads.entry(name.as_str().to_owned()).or_default();
        entry.intended = Some(change);
    }

    /// The intended write was completed.
    pub(crate) fn settle(&mut self, name: &PadName) -> Option<Change> {
        let entry = self.pads.get_mut(name.as_str())?;
        if let Some(change) = entry.intended.take() {
            entry.current = Some(change);
            entry.seen = None;
        }
        entry.current.clone()
    }

    /// The pads of which a revision is not `known`, or a write was in progress.
    pub(crate) fn unsettled(&self, known: impl Fn(&str, u64) -> bool) -> Vec<String> {
        let is_settled = |(name, entry): &(&String, &Entry)| {
            let is_known = |change: &Change| known(name, change.number);
            entry.intended.is_none() && entry.current.as_ref().is_some_and(is_known)
        };
        let unsettled = self.pads.iter().filter(|entry| !is_settled(entry));
        unsettled.map(|(name, _)| name.clone()).collect()
    }

    /// Whether a write to a pad was in progress.
    pub(crate) fn intends(&self, name: &PadName) -> bool {
        self.pads.get(name.as_str()).is_some_and(|entry| entry.intended.is_some())
    }

    /// The intended write will not happen.
    pub(crate) fn abandon(&mut self, name: &PadName) {
        if let Some(entry) = self.pads.get_mut(name.as_str()) {
            entry.intended = None;
        }
    }

    /// The pad does not exist.
    pub(crate) fn forget(&mut self, name: &PadName) {
        self.pads.remove(name.as_str());
    }

    /// Forgets all pads except these.
    pub(crate) fn keep_only(&mut self, names: &[PadName]) {
        self.pads.retain(|known, _| names.iter().any(|name| name.as_str() == known));
    }

    /// Keeps the `most` pads that changed last, and the one that was just read. A forgotten
    /// pad only gets a new revision when it is read again.
    pub(crate) fn keep_youngest(&mut self, most: usize, just_read: &PadName) {
        while self.pads.len() > most {
            let age = |entry: &Entry| {
                let change = entry.intended.as_ref().or(entry.current.as_ref());
                change.map(|change| (change.changed_at, change.number))
            };
            let others = self.pads.iter().filter(|(name, _)| *name != just_read.as_str());
            let oldest = others.min_by_key(|(_, entry)| age(entry)).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            self.pads.remove(&oldest);
        }
    }

    /// Whether a server died after it exchanged a pad's files and before it checked the
    /// replaced one, and that one is neither the content it expected nor the one it wrote.
    /// Then a person had saved it.
    pub(crate) fn replaced_an_edit(&self, name: &PadName, pad: &Digest, left: &Digest) -> bool {
        let Some(Entry { current: Some(current), intended: Some(intended), .. }) =
            self.pads.get(name.as_str())
        else {
            return false;
        };
        *pad == intended.digest && *left != current.digest && *left != intended.digest
    }
}

/// A pad's revision, with its author and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The revision to pass to a write.
    pub revision: String,
    /// Bytes of the content.
    pub bytes: u64,
    /// When it was made, in milliseconds since 1970.
    pub changed_at: u64,
    /// Its author.
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
