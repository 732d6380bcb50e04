//! Everything a process ever printed, byte for byte, in files of bounded size. The PTY is read
//! straight into a shared mapping of the newest file, so that a byte that was read is in the file:
//! nothing that happens to this process afterwards can lose it.

mod segment;

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

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
    /// Files begun so far, which decides how large the next one is.
    begun: usize,
}

/// Looks at a log that is being written.
#[derive(Debug, Clone)]
pub struct Reader(Arc<RwLock<VecDeque<Arc<Segment>>>>);

/// Bytes of a log, from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes {
    /// The offset of the first byte; later than asked for where older ones are gone.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Log {
    /// Opens the log in a folder, or begins one there. What a server that was killed had read but
    /// not yet recorded is found again.
    pub fn open(folder: &Path, budget: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut paths: Vec<_> = std::fs::read_dir(folder)?
            .flatten()
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "log"))
            .collect();
        paths.sort();
        let mut segments = VecDeque::new();
        for path in paths {
            let segment = Segment::open(&path)?;
            segment.recover();
            segments.push_back(Arc::new(segment));
        }
        let begun = segments.len();
        let segments = Reader(Arc::new(RwLock::new(segments)));
        Ok(Self { folder: folder.to_owned(), budget, segments, begun })
    }

    /// A way to look at this log from elsewhere.
    pub fn reader(&self) -> Reader {
        self.segments.clone()
    }

    /// Reads up to `most` bytes from a PTY into the log; returns what came. `Ok` with nothing is
    /// the end of the stream.
    pub fn read_from(&mut self, pty: impl AsFd, most: usize) -> io::Result<Chunk> {
        let segment = match self.segments.last().filter(|segment| segment.room() > 0) {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        let (from, to) = segment.read_from(pty, most)?;
        Ok(Chunk { segment, from, to })
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.segments.end()
    }

    /// Bytes that the log's files take on the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.segments.read().iter().map(|segment| segment.disk_bytes()).sum()
    }

    /// Removes the oldest file; the newest always stays. Returns the bytes that were freed.
    pub fn drop_oldest(&mut self) -> u64 {
        let mut segments = self.segments.0.write().unwrap_or_else(PoisonError::into_inner);
        if segments.len() < 2 {
            return 0;
        }
        let Some(oldest) = segments.pop_front() else { return 0 };
        oldest.remove();
        oldest.disk_bytes()
    }

    fn begin_segment(&mut self) -> io::Result<Arc<Segment>> {
        let start = self.end();
        let size = SEGMENT_BYTES[self.begun.min(SEGMENT_BYTES.len() - 1)];
        let path = self.folder.join(format!("{start:020}.log"));
        let segment = Arc::new(Segment::create(&path, start, size)?);
        self.begun += 1;
        let mut segments = self.segments.0.write().unwrap_or_else(PoisonError::into_inner);
        segments.push_back(segment.clone());
        drop(segments);
        while self.disk_bytes() > self.budget && self.drop_oldest() > 0 {}
        Ok(segment)
    }
}

/// What one read brought, in place.
#[derive(Debug)]
pub struct Chunk {
    segment: Arc<Segment>,
    from: usize,
    to: usize,
}

impl Chunk {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.segment.written()[self.from..self.to]
    }

    /// The offset after them.
    pub fn end(&self) -> u64 {
        self.segment.start() + self.to as u64
    }
}

impl Reader {
    /// The offset of the first byte that is still there.
    pub fn start(&self) -> u64 {
        self.read().front().map_or(0, |segment| segment.start())
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.read().back().map_or(0, |segment| segment.end())
    }

    /// Up to `most` bytes from `offset` on, or from the first that is still there. The memory they
    /// were looked at in is let go of: there is a copy.
    pub fn copy(&self, offset: u64, most: usize) -> Bytes {
        let mut copied = Bytes { offset: offset.max(self.start()), bytes: Vec::new() };
        self.visit(offset, most, |piece| {
            copied.bytes.extend_from_slice(piece);
            true
        });
        self.release(copied.offset, copied.offset + copied.bytes.len() as u64);
        copied
    }

    /// Shows up to `most` bytes from `offset` on, piece by piece and in place, until `look` says
    /// `false`. Returns the offset after what was shown.
    pub fn visit(&self, offset: u64, most: usize, mut look: impl FnMut(&[u8]) -> bool) -> u64 {
        let all = self.read();
        let mut at = offset.max(all.front().map_or(0, |segment| segment.start()));
        // Mostly the last one or two of many.
        let first = all.partition_point(|segment| segment.end() <= at);
        let segments: Vec<_> = all.range(first..).cloned().collect();
        drop(all);
        let mut left = most;
        for segment in &segments {
            if segment.end() <= at {
                continue;
            }
            let written = segment.written();
            let from = usize::try_from(at.saturating_sub(segment.start())).unwrap_or(usize::MAX);
            let Some(piece) = written.get(from..) else { continue };
            let piece = &piece[..piece.len().min(left)];
            if piece.is_empty() {
                break;
            }
            left -= piece.len();
            at = segment.start() + (from + piece.len()) as u64;
            if !look(piece) {
                break;
            }
        }
        at
    }

    /// Lets go of the memory that bytes take which were written or looked at, the last page aside.
    /// They stay where they are, and may be looked at again.
    pub fn release(&self, from: u64, to: u64) {
        for segment in self.read().iter().rev() {
            let within = |at: u64| usize::try_from(at.saturating_sub(segment.start()));
            if let (Ok(from), Ok(to)) = (within(from), within(to)) {
                segment.release(from, to);
            }
            if segment.start() <= from {
                break;
            }
        }
    }

    fn last(&self) -> Option<Arc<Segment>> {
        self.read().back().cloned()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, VecDeque<Arc<Segment>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pattern(from: u64, length: usize) -> Vec<u8> {
        (0..length as u64).map(|n| ((from + n) % 251 + 1) as u8).collect()
    }

    /// Writes `length` bytes of the pattern through a pipe into the log.
    fn fill(log: &mut Log, length: usize) {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut left = length;
        while left > 0 {
            let piece = pattern(log.end(), left.min(30_000));
            writer.write_all(&piece).unwrap();
            let mut arrived = 0;
            while arrived < piece.len() {
                let before = log.end();
                let chunk = log.read_from(&reader, 16 << 10).unwrap();
                assert_eq!(chunk.bytes(), pattern(before, chunk.bytes().len()));
                assert_eq!(chunk.end(), log.end());
                arrived += chunk.bytes().len();
            }
            left -= piece.len();
        }
    }

    #[test]
    fn what_was_read_is_there_across_files_and_a_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        fill(&mut log, 700_000);
        for _ in 0..2 {
            let reader = log.reader();
            assert_eq!((reader.start(), reader.end()), (0, log.end()));
            assert_eq!(reader.copy(0, usize::MAX).bytes, pattern(0, 700_000));
            reader.release(5_000, 650_000);
            let middle = reader.copy(61_000, 300_000);
            assert_eq!((middle.offset, middle.bytes), (61_000, pattern(61_000, 300_000)));
            assert!(reader.copy(700_000, 10).bytes.is_empty());
            assert!(reader.copy(u64::MAX, 10).bytes.is_empty());
            log = Log::open(dir.path(), 64 << 20).unwrap();
        }
        fill(&mut log, 1_000);
        assert_eq!(log.reader().copy(0, usize::MAX).bytes, pattern(0, 701_000));
    }

    #[test]
    fn what_was_copied_is_not_held_in_memory_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        fill(&mut log, 5_000_000);
        let reader = log.reader();
        assert!(resident_kib(dir.path()) > 4_000);
        assert_eq!(reader.copy(0, usize::MAX).bytes.len(), 5_000_000);
        // The header of each file, and the page where it ends.
        assert!(resident_kib(dir.path()) < 100, "{}", resident_kib(dir.path()));
    }

    /// What the files of a folder take of this process's memory.
    fn resident_kib(folder: &Path) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut ours, mut sum) = (false, 0);
        for line in maps.lines() {
            match line.strip_prefix("Rss:") {
                Some(rss) if ours => {
                    sum += rss.trim_end_matches("kB").trim().parse::<u64>().unwrap()
                }
                // A mapping begins with its addresses and ends with its file; fields have a colon.
                _ if line.split(' ').next().unwrap().contains('-') => {
                    ours = line.contains(folder.to_str().unwrap());
                }
                _ => {}
            }
        }
        sum
    }

    #[test]
    fn the_oldest_goes_when_the_budget_is_spent_and_offsets_never_go_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 1_500_000).unwrap();
        fill(&mut log, 5_000_000);
        assert!(log.disk_bytes() <= 1_500_000 + (1 << 20));
        let reader = log.reader();
        assert!(reader.start() > 3_000_000);
        let kept = reader.copy(0, usize::MAX);
        assert_eq!(kept.offset, reader.start());
        assert_eq!(kept.bytes, pattern(kept.offset, kept.bytes.len()));
        assert_eq!(kept.offset + kept.bytes.len() as u64, 5_000_000);
        let again = Log::open(dir.path(), 1_500_000).unwrap();
        assert_eq!((again.reader().start(), again.end()), (reader.start(), 5_000_000));
    }

    #[test]
    fn bytes_that_were_read_but_not_recorded_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        fill(&mut log, 1_000);
        // As if the server had died between the read and the record of it.
        log.segments.last().unwrap().forget_length(400);
        assert_eq!(log.end(), 600);
        let again = Log::open(dir.path(), 64 << 20).unwrap();
        assert_eq!(again.end(), 1_000);
        assert_eq!(again.reader().copy(0, usize::MAX).bytes, pattern(0, 1_000));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000000.log");
        std::fs::write(&path, "no log").unwrap();
        assert!(Log::open(dir.path(), 1 << 20).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"no log");
    }
}
