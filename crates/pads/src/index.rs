//! Which revision each content is, and whose. Numbers are given out for the whole project and never
//! twice, so that a pad that was removed and made again never has a revision it had before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::folder::Stamp;
use crate::name::PadName;

/// Who changed a file that changed without us.
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
    /// Number and content, so that a revision never means another content, even where the number of an
    /// edit that we only noticed could not be written down before the machine stopped.
    pub(crate) fn revision(&self) -> String {
        format!("{}-{}", self.number, self.digest.short())
    }
}

/// What is known of a pad.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Entry {
    /// What it was when last looked at.
    current: Option<Change>,
    /// What is being written. Whether it came into its place is seen in the file.
    intended: Option<Change>,
    /// A look at the file from outside that still says what its content is.
    #[serde(skip)]
    seen: Option<Stamp>,
}

/// All pads, as the state folder holds them.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Index {
    /// The highest number ever given out.
    last: u64,
    pads: BTreeMap<String, Entry>,
}

/// A file as it was found.
pub(crate) struct FileState<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) bytes: u64,
    pub(crate) stamp: &'a Stamp,
    /// When it was looked at, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// How much older than a look at it a file's last change must be, for its times to tell the next change
/// from this one: file systems exist that count in pairs of seconds.
const COARSE_CLOCK_MS: u64 = 3_000;

impl Index {
    /// What a pad is, now that its file was read, and whether that is news.
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

    /// What a pad is, if its file looks as it did when it was last read.
    pub(crate) fn unchanged(&self, name: &PadName, stamp: &Stamp) -> Option<Change> {
        let entry = self.pads.get(name.as_str())?;
        (entry.seen.as_ref() == Some(stamp)).then(|| entry.current.clone())?
    }

    /// Notes what is about to be written.
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

    /// What was intended has happened.
    pub(crate) fn settle(&mut self, name: &PadName) -> Option<Change> {
        let entry = self.pads.get_mut(name.as_str())?;
        if let Some(change) = entry.intended.take() {
            entry.current = Some(change);
            entry.seen = None;
        }
        entry.current.clone()
    }

    /// Whether something was to be written to a pad.
    pub(crate) fn intends(&self, name: &PadName) -> bool {
        self.pads.get(name.as_str()).is_some_and(|entry| entry.intended.is_some())
    }

    /// What was intended will not happen.
    pub(crate) fn abandon(&mut self, name: &PadName) {
        if let Some(entry) = self.pads.get_mut(name.as_str()) {
            entry.intended = None;
        }
    }

    /// There is no such pad (any more).
    pub(crate) fn forget(&mut self, name: &PadName) {
        self.pads.remove(name.as_str());
    }

    /// Keeps only what is known of these.
    pub(crate) fn keep_only(&mut self, names: &[PadName]) {
        self.pads.retain(|known, _| names.iter().any(|name| name.as_str() == known));
    }

    /// Keeps what changed last of more than so many, and the one that is looked at. A pad that is
    /// forgotten only gets a new revision when it is looked at again.
    pub(crate) fn keep_youngest(&mut self, most: usize, looked_at: &PadName) {
        while self.pads.len() > most {
            let age = |entry: &Entry| {
                let change = entry.intended.as_ref().or(entry.current.as_ref());
                change.map(|change| (change.changed_at, change.number))
            };
            let others = self.pads.iter().filter(|(name, _)| *name != looked_at.as_str());
            let oldest = others.min_by_key(|(_, entry)| age(entry)).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            self.pads.remove(&oldest);
        }
    }

    /// Whether a server died between exchanging the files of a pad and looking at what came out, and
    /// that was neither what it should have replaced nor what it wrote: then a person had saved it.
    pub(crate) fn took_out(&self, name: &PadName, pad: &Digest, left: &Digest) -> bool {
        let Some(Entry { current: Some(current), intended: Some(intended), .. }) =
            self.pads.get(name.as_str())
        else {
            return false;
        };
        *pad == intended.digest && *left != current.digest && *left != intended.digest
    }
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
