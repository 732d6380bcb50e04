//! Reads a log that is being written.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Reuse;
use super::index;
use super::key_frame::KeyFrame;
use super::segment::Segment;
use super::sizes::{self, SizeMark};
use super::times::{self, TimeMark};

/// Reads a log that is being written.
#[derive(Debug, Clone, Default)]
pub struct Reader(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Oldest first. Bytes may be missing between two of them.
    segments: RwLock<VecDeque<Arc<Segment>>>,
    /// The log ends at least here, even if bytes are missing at its end.
    least_end: AtomicU64,
}

/// Bytes of a log from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBytes {
    /// The offset of the first byte; later than requested if older ones are gone.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The next bytes are missing.
    pub ends_at_gap: bool,
}

impl LogBytes {
    /// The offset after them.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl Reader {
    /// The offset of the first byte that is still available.
    pub fn start(&self) -> u64 {
        let segments = self.read();
        let first = segments.iter().find(|segment| !segment.is_damaged());
        first.map_or_else(|| self.end_of(&segments), |segment| segment.start())
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.end_of(&self.read())
    }

    /// The offset after the last available byte before `offset`; 0 if there is none.
    pub fn end_before(&self, offset: u64) -> u64 {
        let segments = self.read();
        let readable = segments.iter().rev().filter(|segment| !segment.is_damaged());
        let before =
            |segment: &&Arc<Segment>| segment.start() < offset && segment.end() > segment.start();
        let last = readable.into_iter().find(before);
        last.map_or(0, |segment| segment.end().min(offset))
    }

    /// Up to `most` bytes from `offset` on, or from the first available one after it; fewer if the
    /// next ones are missing. The memory of the mapping is released, because the bytes are copied.
    pub fn copy(&self, offset: u64, most: usize) -> LogBytes {
        let mut copied = LogBytes { offset, bytes: Vec::new(), ends_at_gap: false };
        let end = self.visit_segments(offset, most, |segment, at, piece| {
            if copied.bytes.is_empty() {
                copied.offset = at;
            }
            let follows = copied.end() == at;
            if follows {
                copied.bytes.extend_from_slice(piece);
            }
            if follows && segment.is_damaged() {
                // Damaged in the meantime: these may be zeros.
                copied.bytes.truncate(copied.bytes.len() - piece.len());
            }
            follows
        });
        match copied.bytes.is_empty() {
            true => copied.offset = end.max(offset),
            false => copied.ends_at_gap = end > copied.end(),
        }
        self.release(copied.offset, copied.end());
        copied
    }

    /// Shows up to `most` bytes from `offset` on in place, in pieces with their offsets, until
    /// `look` returns `false`. Returns the offset after what was shown. Gaps are skipped.
    pub fn visit(&self, offset: u64, most: usize, mut look: impl FnMut(u64, &[u8]) -> bool) -> u64 {
        self.visit_segments(offset, most, |_, at, piece| look(at, piece))
    }

    fn visit_segments(
        &self,
        offset: u64,
        most: usize,
        mut look: impl FnMut(&Segment, u64, &[u8]) -> bool,
    ) -> u64 {
        let all = self.read();
        let end = self.end_of(&all);
        // Usually the last one or two of many.
        let first = all.partition_point(|segment| segment.end() <= offset);
        let segments: Vec<_> = all.range(first..).cloned().collect();
        drop(all);
        let (mut at, mut left) = (offset, most);
        for segment in segments.iter().filter(|segment| !segment.is_damaged()) {
            let written = segment.written();
            let from = usize::try_from(at.saturating_sub(segment.start())).unwrap_or(usize::MAX);
            let Some(piece) = written.get(from..) else { continue };
            let piece = &piece[..piece.len().min(left)];
            if left == 0 {
                return at;
            }
            if piece.is_empty() {
                continue;
            }
            let begin = segment.start() + from as u64;
            at = begin + piece.len() as u64;
            left -= piece.len();
            if !look(segment, begin, piece) {
                return at;
            }
        }
        match left {
            0 => at,
            _ => at.max(end),
        }
    }

    /// When the bytes from `from` to `to` were read: all marks in between, and the last one before. The time of
    /// output of an older patterm is unknown.
    pub fn times(&self, from: u64, to: u64) -> Vec<TimeMark> {
        let all = self.read();
        let first = all.partition_point(|segment| segment.end() <= from);
        let segments: Vec<_> = all.range(first..).cloned().collect();
        drop(all);
        // Each file begins with a mark of its own.
        let segments = segments.iter().take_while(|segment| segment.start() < to);
        let mut marks = Vec::new();
        for mark in segments.filter(|segment| !segment.is_damaged()).flat_map(|it| it.marks()) {
            if mark.offset < to {
                times::push(&mut marks, mark);
            }
        }
        let needed = marks.partition_point(|mark| mark.offset <= from).saturating_sub(1);
        marks.split_off(needed)
    }

    /// Records a resize of the terminal.
    pub fn note_size(&self, mark: SizeMark) {
        let segment = self.read().iter().rev().find(|it| it.start() <= mark.offset).cloned();
        if let Some(segment) = segment {
            segment.note_size(mark);
        }
    }

    /// The resizes from one offset to another, both included.
    pub fn sizes(&self, from: u64, to: u64) -> Vec<SizeMark> {
        let all = self.read();
        let first = all.partition_point(|segment| segment.end() < from);
        let segments: Vec<_> = all.range(first..).cloned().collect();
        drop(all);
        let segments = segments.iter().take_while(|segment| segment.start() <= to);
        let mut marks = Vec::new();
        for mark in segments.filter(|segment| !segment.is_damaged()).flat_map(|it| it.sizes()) {
            if (from..=to).contains(&mark.offset) {
                sizes::push(&mut marks, mark);
            }
        }
        marks
    }

    /// Stores a key frame beside the output that it belongs to. `false` if there is no room for it: all that is stored
    /// beside a log takes at most 1 % of its bytes.
    pub fn put_key_frame(&self, frame: &KeyFrame) -> io::Result<bool> {
        let segments: Vec<_> = self.read().iter().cloned().collect();
        let contains = |segment: &&Arc<Segment>| {
            segment.start() < frame.offset && segment.end() >= frame.offset && !segment.is_damaged()
        };
        let Some(segment) = segments.iter().rev().find(contains) else { return Ok(false) };
        let bytes: u64 = segments.iter().map(|segment| segment.disk_bytes()).sum();
        let used: u64 = segments.iter().map(|segment| index::bytes(segment.path())).sum();
        let added = frame.bytes.len() as u64 + index::BYTES_TO_COME;
        Ok(used + added <= index::most_bytes(bytes) && segment.put_key_frame(frame)?)
    }

    /// The newest key frame at or before an offset. One that does not belong to the output is ignored.
    pub fn key_frame(&self, offset: u64) -> Option<KeyFrame> {
        let segments: Vec<_> = self.read().iter().cloned().collect();
        let mut older = segments.iter().rev().filter(|it| it.start() < offset && !it.is_damaged());
        older.find_map(|it| it.key_frames().into_iter().rfind(|frame| frame.offset <= offset))
    }

    /// Releases the memory of bytes that were written or read, except the last page. They stay in
    /// the file and can be read again.
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

    pub(super) fn disk_bytes(&self) -> u64 {
        self.read().iter().map(|segment| segment.disk_bytes()).sum()
    }

    pub(super) fn last(&self) -> Option<Arc<Segment>> {
        self.read().back().cloned()
    }

    pub(super) fn push(&self, segment: Arc<Segment>) {
        self.write().push_back(segment);
    }

    pub(super) fn replace(&self, segments: VecDeque<Arc<Segment>>) {
        *self.write() = segments;
    }

    /// The log ends at least at this offset.
    pub(super) fn raise_end(&self, offset: u64) {
        self.0.least_end.fetch_max(offset, Ordering::AcqRel);
    }

    /// Takes the oldest segment, unless it is the only one.
    pub(super) fn drop_oldest(&self) -> Option<Arc<Segment>> {
        let mut segments = self.write();
        (segments.len() > 1).then(|| segments.pop_front()).flatten()
    }

    /// Takes the oldest segment, if nothing of it is needed and nobody reads it.
    pub(super) fn take_oldest(&self, needed: u64) -> Result<Segment, Reuse> {
        let mut segments = self.write();
        let end = self.end_of(&segments);
        let oldest = segments.pop_front().ok_or(Reuse::None)?;
        let taken = match oldest.end() <= needed {
            true => Arc::try_unwrap(oldest),
            false => Err(oldest),
        };
        match taken {
            Ok(oldest) => {
                self.raise_end(end);
                Ok(oldest)
            }
            Err(oldest) => {
                segments.push_front(oldest);
                Err(Reuse::Busy)
            }
        }
    }

    /// Takes the segments that failed. Their bytes still count.
    pub(super) fn drop_damaged(&self) -> Vec<Arc<Segment>> {
        if !self.read().iter().any(|segment| segment.is_damaged()) {
            return Vec::new();
        }
        let mut segments = self.write();
        self.raise_end(self.end_of(&segments));
        let (damaged, intact) = segments.drain(..).partition(|segment| segment.is_damaged());
        *segments = intact;
        damaged.into()
    }

    fn end_of(&self, segments: &VecDeque<Arc<Segment>>) -> u64 {
        let last = segments.back().map_or(0, |segment| segment.end());
        last.max(self.0.least_end.load(Ordering::Acquire))
    }

    fn read(&self) -> RwLockReadGuard<'_, VecDeque<Arc<Segment>>> {
        self.0.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, VecDeque<Arc<Segment>>> {
        self.0.segments.write().unwrap_or_else(PoisonError::into_inner)
    }
}
