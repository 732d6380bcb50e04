//! Everything a process ever printed, byte for byte, in files of bounded size. The PTY is read
//! straight into a shared mapping of the newest file, so that a byte that was read is in the file:
//! nothing that happens to this process afterwards can lose it.
//!
//! A log may have gaps: what stood in a file that somebody damaged or removed, and what was printed
//! while nothing could be kept. Offsets count what is missing, and readers are told.

mod fault;
mod files;
mod reader;
mod segment;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use files::begin_no_files;
pub use reader::{Bytes, Reader};
use segment::Segment;

/// Data bytes of a log's first files: a quiet pane costs little, a loud one changes files rarely.
const SEGMENT_BYTES: [usize; 3] = [60 << 10, 252 << 10, 1020 << 10];

/// The log of one process. It has one writer; [`Reader`]s may look at it from other threads.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    /// Bytes on disk above which the oldest file goes.
    budget: u64,
    segments: Reader,
    /// The file that is written, the newest.
    current: Option<Arc<Segment>>,
    /// Files begun so far, which decides how large the next one is.
    begun: usize,
    /// What the folder holds is known.
    opened: bool,
}

/// What came of the wish to use the oldest file again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is the newest now, and empty.
    Done,
    /// Somebody looks at it; in a moment nobody does.
    Busy,
    /// There is no file.
    None,
}

impl Log {
    /// Opens the log in a folder, or begins one there. What a server that was killed had read but
    /// not yet recorded is found again. A damaged file is set aside.
    pub fn open(folder: &Path, budget: u64) -> io::Result<Self> {
        let mut log = Self::unopened(folder, budget);
        log.find_segments()?;
        Ok(log)
    }

    /// A log whose files cannot be opened now; [`Log::make_room`] tries it again.
    pub fn unopened(folder: &Path, budget: u64) -> Self {
        let folder = folder.to_owned();
        let segments = Reader::default();
        Self { folder, budget, segments, current: None, begun: 0, opened: false }
    }

    fn find_segments(&mut self) -> io::Result<()> {
        let found = files::open_all(&self.folder)?;
        self.begun = found.len();
        self.current = found.back().cloned();
        self.segments.replace(found);
        self.opened = true;
        Ok(())
    }

    /// Whether files are missing at its end, so that the offset it ends at is lower than it was.
    pub fn lacks_end(&self) -> bool {
        self.current.as_ref().is_none_or(|last| last.has_next())
    }

    /// Goes on at an offset, if it is at a lower one. What is in between counts as dropped.
    pub fn skip_to(&mut self, offset: u64) {
        if offset > self.end() {
            self.segments.raise_end(offset);
            // Nothing may be written behind the gap as if it stood before it.
            self.current = None;
        }
    }

    /// A way to look at this log from elsewhere.
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

    /// Whether what is read next can be kept.
    pub fn has_room(&self) -> bool {
        self.current.as_ref().is_some_and(|segment| segment.room() > 0 && !segment.is_damaged())
    }

    /// Begins a new file. An error means that there is no room on the disk, or no access to it.
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
        self.go_on_in(segment);
        while self.disk_bytes() > self.budget && self.drop_oldest() > 0 {}
        Ok(())
    }

    /// Whether [`Log::make_room`] would find room on the disk.
    pub fn finds_room(&self) -> io::Result<()> {
        files::try_room(&self.folder, self.next_bytes())
    }

    /// Empties the oldest file and goes on in it: that needs no room on the disk. Bytes from
    /// `needed` on are not given up.
    pub fn reuse_oldest(&mut self, needed: u64) -> io::Result<Reuse> {
        self.drop_damaged();
        let start = self.end();
        // It may be the only one, and nobody else may have it.
        let writes = self.current.take().is_some();
        let oldest = self.segments.take_oldest(needed);
        if writes {
            // Else a gap follows the last file, and nothing may be written before that.
            self.current = self.segments.last();
        }
        let mut oldest = match oldest {
            Ok(oldest) => oldest,
            Err(reuse) => return Ok(reuse),
        };
        // Whatever comes of it: its bytes are gone, and the end stays where it is.
        self.segments.raise_end(start);
        oldest.reuse(&files::path(&self.folder, start), start)?;
        self.go_on_in(Arc::new(oldest));
        Ok(Reuse::Done)
    }

    /// Reads up to `most` bytes from a PTY into the log; returns how many came. Nothing is the end
    /// of the stream. Where there is no room they are counted, and lost.
    pub fn read_from(&mut self, pty: impl AsFd, most: usize) -> io::Result<usize> {
        match &self.current {
            Some(segment) if self.has_room() => segment.read_from(pty, most),
            _ => self.read_away(pty, most),
        }
    }

    fn read_away(&mut self, pty: impl AsFd, most: usize) -> io::Result<usize> {
        let mut away = vec![0; most];
        let read = rustix::io::read(pty, &mut away)?;
        self.skip_to(self.end() + read as u64);
        Ok(read)
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.segments.end()
    }

    /// Bytes that the log's files take on the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.segments.disk_bytes()
    }

    /// Removes the oldest file; the newest always stays. Returns the bytes that were freed.
    pub fn drop_oldest(&mut self) -> u64 {
        let Some(oldest) = self.segments.drop_oldest() else { return 0 };
        let _ = std::fs::remove_file(oldest.path());
        oldest.disk_bytes()
    }

    /// Lets go of files that failed.
    fn drop_damaged(&mut self) {
        for damaged in self.segments.drop_damaged() {
            files::set_aside(damaged.path());
        }
        if self.current.as_ref().is_some_and(|current| current.is_damaged()) {
            self.current = None;
        }
    }

    fn go_on_in(&mut self, segment: Arc<Segment>) {
        if let Some(before) = self.segments.last() {
            before.set_next(segment.start());
        }
        self.current = Some(segment.clone());
        self.segments.push(segment);
    }

    fn next_bytes(&self) -> usize {
        SEGMENT_BYTES[self.begun.min(SEGMENT_BYTES.len() - 1)]
    }
}
