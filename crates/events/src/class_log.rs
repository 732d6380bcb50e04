//! The files of one class of events. Events are appended to the last one.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use patterm_wire::events::EventClass;

use crate::line;
use crate::segment::{Scan, Segment, scan};

/// Files per class: dropping the oldest one loses little of the history, and a file can be read at once.
const FILES: u64 = 16;

/// The smallest file worth its own name.
const LEAST_FILE_BYTES: u64 = 4 << 10;

/// The largest file, which is read into memory as a whole.
const MOST_FILE_BYTES: u64 = 2 << 20;

#[derive(Debug)]
pub(crate) struct ClassLog {
    class: EventClass,
    folder: PathBuf,
    /// Bytes that its files may take.
    budget: u64,
    /// Its files, oldest first.
    segments: VecDeque<Segment>,
    /// The last of them, if it can be continued.
    current: Option<Arc<File>>,
    /// The number of its last event; 0 without any.
    pub(crate) last: u64,
    /// The number of the last event that was dropped.
    pub(crate) dropped_through: u64,
    /// It has events that may not be on the disk yet.
    pub(crate) unsynced: bool,
}

/// What opening a class found at its end.
#[derive(Debug, Default)]
pub(crate) struct FoundEnd {
    /// What its last file ends with.
    pub(crate) scan: Scan,
    /// Bytes that were cut.
    pub(crate) torn_bytes: u64,
}

impl ClassLog {
    /// Opens the files of a class, and cuts what was not written completely. After a power loss the last blocks of a
    /// file may have any content, so everything after the last whole event is cut; otherwise a damaged line is left
    /// for `verify` to report.
    pub(crate) fn open(
        class: EventClass,
        folder: PathBuf,
        mut segments: VecDeque<Segment>,
        budget: u64,
        dropped_through: u64,
        after_power_loss: bool,
        can_write: bool,
    ) -> io::Result<(Self, FoundEnd)> {
        let mut end = FoundEnd::default();
        let mut current = None;
        while let Some(last) = segments.back_mut() {
            let found = scan(&last.read()?);
            let keep = if after_power_loss { found.whole_end } else { found.line_end };
            end.torn_bytes += last.bytes - keep;
            if keep == 0 {
                if can_write {
                    fs::remove_file(&last.path)?;
                }
                segments.pop_back();
                continue;
            }
            if !can_write {
                last.bytes = keep;
                end.scan = found;
                break;
            }
            let file = Segment::open(&last.path, false)?;
            if keep < last.bytes {
                file.set_len(keep)?;
                last.bytes = keep;
            }
            current = Some(Arc::new(file));
            end.scan = found;
            break;
        }
        let last = end.scan.last.as_ref().map_or(0, |event| event.seq);
        let last = last.max(segments.back().map_or(dropped_through, |segment| segment.first));
        let unsynced = end.torn_bytes > 0;
        let opened =
            Self { class, folder, budget, segments, current, last, dropped_through, unsynced };
        Ok((opened, end))
    }

    /// The class.
    pub(crate) fn class(&self) -> EventClass {
        self.class
    }

    /// Its files as they are now.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.segments.iter().cloned().collect()
    }

    /// The file that must be synced.
    pub(crate) fn current(&self) -> Option<Arc<File>> {
        self.current.clone()
    }

    /// Appends an event with one write. If that fails, nothing of it is left.
    pub(crate) fn append(&mut self, seq: u64, hash: &str, json: &str) -> io::Result<()> {
        let line = line::encode(hash, self.last, json);
        let bytes = line.len() as u64;
        let is_full = |last: &Segment| last.bytes + bytes > self.file_bytes();
        if self.current.is_none() || self.segments.back().is_none_or(is_full) {
            self.begin_file(seq)?;
        }
        let (Some(mut file), Some(segment)) = (self.current.as_deref(), self.segments.back_mut())
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match file.write(&line) {
            Ok(written) if written == line.len() => {
                segment.bytes += bytes;
                (self.last, self.unsynced) = (seq, true);
                Ok(())
            }
            outcome => {
                if file.set_len(segment.bytes).is_err() {
                    // What is left of the line is not continued.
                    self.current = None;
                }
                // A disk without room for the whole line writes its beginning.
                Err(outcome.err().unwrap_or_else(|| io::ErrorKind::StorageFull.into()))
            }
        }
    }

    fn file_bytes(&self) -> u64 {
        (self.budget / FILES).clamp(LEAST_FILE_BYTES, MOST_FILE_BYTES)
    }

    /// Begins the next file. The previous one is synced first, so that only the last one can lose anything.
    fn begin_file(&mut self, first: u64) -> io::Result<()> {
        if let Some(file) = &self.current {
            file.sync_data()?;
        }
        let path = Segment::path_of(&self.folder, self.class, first);
        let file = match Segment::open(&path, true) {
            // An attempt failed half-way. The number is new, so no event can be in the file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = Segment::open(&path, false)?;
                file.set_len(0)?;
                file
            }
            opened => opened?,
        };
        File::open(&self.folder)?.sync_all()?;
        self.current = Some(Arc::new(file));
        self.segments.push_back(Segment { path, first, bytes: 0 });
        Ok(())
    }

    /// The number of the last event that must be dropped, with its file; `None` while the files are within the budget.
    pub(crate) fn must_drop(&self) -> Option<u64> {
        let total: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let following = self.segments.get(1)?;
        (total > self.budget).then(|| last_before(following))
    }

    /// Removes the oldest file, with events up to this number.
    pub(crate) fn drop_oldest(&mut self, through: u64) {
        let Some(oldest) = self.segments.pop_front() else { return };
        self.dropped_through = through;
        if let Err(error) = fs::remove_file(&oldest.path) {
            tracing::warn!(file = %oldest.path.display(), %error, "cannot remove old events");
        }
    }
}

/// The number of the last event of the class that precedes a file.
fn last_before(segment: &Segment) -> u64 {
    let first = segment.read().ok().and_then(|bytes| {
        let end = memchr::memchr(b'\n', &bytes)?;
        line::decode(&bytes[..end])
    });
    first.map_or(segment.first - 1, |event| event.class_prev)
}
