//! Everything a process ever printed, byte for byte, in files of limited size. The PTY is read
//! directly into a shared mapping of the newest file, so that every byte that was read is in the
//! file whatever happens to this process.
//!
//! A log may have gaps: the content of a file that was damaged or removed, and output that could
//! not be stored. Offsets include what is missing, and readers are informed.

mod fault;
mod files;
#[cfg(test)]
mod frame_tests;
mod index;
mod key_frame;
mod reader;
mod segment;
mod sizes;
#[cfg(test)]
mod tests;
mod times;
#[cfg(test)]
mod times_tests;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use files::block_new_files;
pub use key_frame::KeyFrame;
pub use reader::{LogBytes, Reader};
use segment::Segment;
pub use sizes::SizeMark;
use times::TimeWriter;
pub use times::{TimeMark, offset_after, time_at};

/// Data bytes of a log's first files: a quiet pane costs little, a busy one changes files rarely.
const SEGMENT_BYTES: [usize; 3] = [60 << 10, 252 << 10, 1020 << 10];

/// The log of one process. It has one writer; [`Reader`]s may read it from other threads.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    /// The limit of bytes on disk, above which the oldest file is removed.
    budget: u64,
    segments: Reader,
    /// The newest file, which is being written.
    current: Option<Arc<Segment>>,
    /// Files created so far, which determines the size of the next one.
    begun: usize,
    /// The files of the folder were read.
    opened: bool,
    /// The times of the newest file.
    times: TimeWriter,
    /// The time of what is read next, in milliseconds since 1970; `None` if it is unknown.
    now: Option<u64>,
    /// Indexes without files were removed.
    swept: bool,
}

/// The result of reusing the oldest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is the newest file now, and empty.
    Done,
    /// A reader is using it; try again.
    Busy,
    /// There is no file.
    None,
}

impl Log {
    /// Opens the log in a folder, or creates one. Bytes that a killed server had read but not yet
    /// recorded are recovered. A damaged file is set aside.
    pub fn open(folder: &Path, budget: u64) -> io::Result<Self> {
        let mut log = Self::unopened(folder, budget);
        log.find_segments()?;
        Ok(log)
    }

    /// A log whose files cannot be opened now; [`Log::make_room`] tries again.
    pub fn unopened(folder: &Path, budget: u64) -> Self {
        let folder = folder.to_owned();
        let segments = Reader::default();
        Self {
            folder,
            budget,
            segments,
            current: None,
            begun: 0,
            opened: false,
            times: TimeWriter::default(),
            now: None,
            swept: false,
        }
    }

    fn find_segments(&mut self) -> io::Result<()> {
        let found = files::open_all(&self.folder)?;
        self.begun = found.len();
        self.current = found.back().cloned();
        self.times = self.current.as_deref().map(TimeWriter::of).unwrap_or_default();
        if let Some(current) = &self.current {
            current.drop_lost_sizes();
        }
        self.segments.replace(found);
        self.opened = true;
        Ok(())
    }

    /// Whether files are missing at its end, so that its end offset is lower than it was.
    pub fn is_end_missing(&self) -> bool {
        self.current.as_ref().is_none_or(|last| last.has_next())
    }

    /// Continues at a higher offset. What is in between counts as dropped.
    pub fn skip_to(&mut self, offset: u64) {
        if offset > self.end() {
            self.segments.raise_end(offset);
            // Nothing may be written before the gap any more.
            self.current = None;
        }
    }

    /// A reader for other threads.
    pub fn reader(&self) -> Reader {
        self.segments.clone()
    }

    /// Whether its files could be opened.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// Whether it has no file.
    pub fn is_empty(&self) -> bool {
        self.segments.last().is_none()
    }

    /// Whether what is read next can be stored.
    pub fn has_room(&self) -> bool {
        self.current.as_ref().is_some_and(|segment| segment.room() > 0 && !segment.is_damaged())
    }

    /// Creates a new file. An error means that the disk is full or inaccessible.
    pub fn make_room(&mut self) -> io::Result<()> {
        if !self.opened {
            let known = self.end();
            self.find_segments()?;
            self.skip_to(known);
        }
        self.drop_damaged();
        let start = self.end();
        let size = self.next_bytes();
        let segment = Arc::new(files::create(&self.folder, start, size)?);
        self.begun += 1;
        if !std::mem::replace(&mut self.swept, true) {
            files::remove_stray_indexes(&self.folder);
        }
        self.continue_in(segment);
        while self.disk_bytes() > self.budget && self.drop_oldest() > 0 {}
        Ok(())
    }

    /// Checks whether [`Log::make_room`] would find room on disk.
    pub fn check_room(&self) -> io::Result<()> {
        files::check_room(&self.folder, self.next_bytes())
    }

    /// Empties the oldest file and continues in it, which needs no room on disk. Bytes from
    /// `needed` on are preserved.
    pub fn reuse_oldest(&mut self, needed: u64) -> io::Result<Reuse> {
        self.drop_damaged();
        let start = self.end();
        // It may be the only one, and nobody else may hold it.
        let writes = self.current.take().is_some();
        let oldest = self.segments.take_oldest(needed);
        if writes {
            // Otherwise a gap follows the last file, and nothing may be written before the gap.
            self.current = self.segments.last();
        }
        let mut oldest = match oldest {
            Ok(oldest) => oldest,
            Err(reuse) => return Ok(reuse),
        };
        // In any case its bytes are gone, and the end stays where it is.
        self.segments.raise_end(start);
        oldest.reuse(&files::path(&self.folder, start), start)?;
        self.continue_in(Arc::new(oldest));
        Ok(Reuse::Done)
    }

    /// Sets the time of what is read from now on. It must not go back.
    pub fn set_time(&mut self, wall_ms: u64) {
        self.now = Some(wall_ms);
    }

    /// The time of the newest output that has one, if it is in the newest file.
    pub fn last_time(&self) -> Option<u64> {
        self.times.last_ms()
    }

    /// Reads up to `most` bytes from a PTY into the log; returns how many were read, 0 at the end
    /// of the stream. Without room they are counted and dropped.
    pub fn read_from(&mut self, pty: impl AsFd, most: usize) -> io::Result<usize> {
        match &self.current {
            Some(segment) if self.has_room() => {
                if let Some(now) = self.now {
                    self.times.note(segment, now);
                }
                segment.read_from(pty, most)
            }
            _ => self.discard(pty, most),
        }
    }

    fn discard(&mut self, pty: impl AsFd, most: usize) -> io::Result<usize> {
        let mut away = vec![0; most];
        let read = rustix::io::read(pty, &mut away)?;
        self.skip_to(self.end() + read as u64);
        Ok(read)
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.segments.end()
    }

    /// Bytes that the log's files take on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.segments.disk_bytes()
    }

    /// Removes the oldest file, but never the newest. Returns the bytes that were freed.
    pub fn drop_oldest(&mut self) -> u64 {
        let Some(oldest) = self.segments.drop_oldest() else { return 0 };
        files::remove(oldest.path());
        oldest.disk_bytes()
    }

    /// Drops files that failed.
    fn drop_damaged(&mut self) {
        for damaged in self.segments.drop_damaged() {
            files::set_aside(damaged.path());
        }
        if self.current.as_ref().is_some_and(|current| current.is_damaged()) {
            self.current = None;
        }
    }

    fn continue_in(&mut self, segment: Arc<Segment>) {
        if let Some(before) = self.segments.last() {
            before.set_next(segment.start());
        }
        self.times = TimeWriter::of(&segment);
        self.current = Some(segment.clone());
        self.segments.push(segment);
    }

    fn next_bytes(&self) -> usize {
        SEGMENT_BYTES[self.begun.min(SEGMENT_BYTES.len() - 1)]
    }
}
