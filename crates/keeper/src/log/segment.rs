//! One file of a log: a page with a header that says how much is written, then the bytes. It is
//! allocated in full before it is mapped: a write without room on disk would fail in the
//! middle, and a fault inside a read would lose what was read. The written length is also kept in
//! memory, and only that is trusted: others may change the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::fault::FaultGuard;
use super::index;
use super::key_frame::KeyFrame;
use super::sizes::{self, HEADER_SIZES, SizeMark};
use super::times::{self, HEADER_MARKS, TimeMark};

const PAGE: usize = 4096;

/// The size of the header.
const HEADER: usize = PAGE;

const MAGIC: u64 = u64::from_ne_bytes(*b"patlog01");

/// A larger file is not one of ours, and is not read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// How much room is prepared for a read at least: a terminal returns less than that at once.
const READ_ROOM: usize = PAGE;

/// How far ahead room is prepared: few system calls for a busy pane, little memory for a quiet one.
const PREPARED_ROOM: usize = 3 * PAGE;

/// Offsets are JSON numbers on the wire; a file that claims to begin later is damaged.
const MAX_OFFSET: u64 = 1 << 53;

/// Words of the header.
const WORD_MAGIC: usize = 0;
const WORD_START: usize = 1;
const WORD_LENGTH: usize = 2;
/// The start of the next segment, or 0 if there is none; 0.1.0 left it at 0.
const WORD_NEXT: usize = 3;
/// The first of the times: two words for each, the offset and then the milliseconds, which are 0 in unused ones.
/// 0.1.0 neither reads nor clears them; it only leaves offsets that are not in the file.
const WORD_TIMES: usize = 8;
/// The first of the resizes: two words for each, the offset and then the sizes, which are 0 in unused ones. As for the
/// times.
const WORD_SIZES: usize = WORD_TIMES + 2 * HEADER_MARKS;

const _: () = assert!(8 * (WORD_SIZES + 2 * HEADER_SIZES) <= HEADER);

/// Output before a key frame that is compared with what the frame says of it: the index may be of other output.
const COMPARED_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    start: u64,
    length: AtomicUsize,
    /// The end of the data pages that are mapped for writing. Only the writer uses it.
    prepared: AtomicUsize,
    /// Held while times move from the header to the index, while both are read, and while the index is written.
    marks_lock: Mutex<()>,
    /// Held while resizes are written or read.
    sizes_lock: Mutex<()>,
    // Dropped in this order: memory that is no longer mapped must not be guarded.
    guard: FaultGuard,
    mapping: Mapping,
}

/// A whole file in memory.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    size: usize,
}

// SAFETY: the mapping lives as long as the value and never moves. Its only writer appends: bytes
// below the published length are never written again, and the length itself is atomic.
unsafe impl Send for Segment {}
// SAFETY: see above; readers only read below the length that they loaded.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates a file with room for `bytes`.
    pub(super) fn create(path: &Path, start: u64, bytes: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let size = HEADER + bytes;
        let made = fallocate(&file, FallocateFlags::empty(), 0, size as u64)
            .map_err(io::Error::from)
            .and_then(|()| Self::map(path, &file, size));
        let mut segment = made.inspect_err(|_| drop(std::fs::remove_file(path)))?;
        segment.start = start;
        segment.word(WORD_START).store(start, Ordering::Relaxed);
        segment.word(WORD_LENGTH).store(0, Ordering::Relaxed);
        // Last, so that a file with the magic number has the rest.
        segment.word(WORD_MAGIC).store(MAGIC, Ordering::Release);
        Ok(segment)
    }

    /// Opens an existing file. One that is not a log, or is damaged, is `InvalidData`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let damaged = || {
            let why = format!("{} is not an output log, or is damaged", path.display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            // A link, a folder, a pipe.
            Some(libc::ELOOP | libc::EISDIR | libc::ENXIO) => damaged(),
            _ => error,
        })?;
        let metadata = file.metadata()?;
        let fits = (HEADER as u64..=MAX_FILE_BYTES).contains(&metadata.len());
        if !metadata.is_file() || !fits {
            return Err(damaged());
        }
        let size = usize::try_from(metadata.len()).map_err(io::Error::other)?;
        let mut segment = Self::map(path, &file, size)?;
        segment.start = segment.word(WORD_START).load(Ordering::Relaxed);
        let length = segment.word(WORD_LENGTH).load(Ordering::Acquire);
        let is_log = segment.word(WORD_MAGIC).load(Ordering::Acquire) == MAGIC;
        let length = usize::try_from(length).ok().filter(|it| *it <= segment.capacity());
        let (true, true, Some(length)) = (is_log, segment.start <= MAX_OFFSET, length) else {
            return Err(damaged());
        };
        segment.length = AtomicUsize::new(length);
        segment.recover();
        if segment.is_damaged() { Err(damaged()) } else { Ok(segment) }
    }

    fn map(path: &Path, file: &File, size: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), size, access, MapFlags::SHARED, file, 0)? };
        let guard = FaultGuard::new(base, size);
        // Reading ahead would load pages that are to be written into this process's memory.
        // SAFETY: the range is the new mapping, and the advice changes no content.
        let _ = unsafe { madvise(base, size, Advice::Random) };
        let mapping = Mapping { base: base.cast(), size };
        let (path, length) = (path.to_owned(), AtomicUsize::new(0));
        let prepared = AtomicUsize::new(0);
        let (marks_lock, sizes_lock) = (Mutex::default(), Mutex::default());
        Ok(Self { path, start: 0, length, prepared, marks_lock, sizes_lock, guard, mapping })
    }

    /// Recovers bytes beyond the recorded length, up to the last one that is not zero: they were
    /// read, and the reader died before it could record them.
    fn recover(&self) {
        let length = self.length();
        // SAFETY: the whole file is mapped, and nobody writes to it while it is being opened.
        let all =
            unsafe { std::slice::from_raw_parts(self.mapping.base.add(HEADER), self.capacity()) };
        if let Some(last) = all[length..].iter().rposition(|byte| *byte != 0) {
            self.publish(length + last + 1);
        }
    }

    /// Reads from a PTY and appends; returns how much was read. Bytes read into a damaged file
    /// count, though nobody can read them.
    pub(super) fn read_from(&self, pty: impl AsFd, most: usize) -> io::Result<usize> {
        use std::os::fd::AsRawFd;
        let from = self.length();
        let room = most.min(self.prepare(from)? - from);
        let pty = pty.as_fd().as_raw_fd();
        // SAFETY: the range lies in the mapping behind the published length, where no reader reads
        // and only this writer writes.
        let read = unsafe { libc::read(pty, self.mapping.base.add(HEADER + from).cast(), room) };
        let Ok(read) = usize::try_from(read) else {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EFAULT) {
                self.guard.set_damaged();
            }
            return Err(error);
        };
        self.publish(from + read);
        Ok(read)
    }

    /// Maps the pages that the next read writes to; returns where they end. If the kernel had to map a page in
    /// the middle of a read, and this process was killed meanwhile, the read would fail after it had taken up
    /// to 64 bytes from the terminal, and those would be lost.
    fn prepare(&self, from: usize) -> io::Result<usize> {
        let prepared = self.prepared.load(Ordering::Relaxed);
        if prepared >= self.capacity().min(from + READ_ROOM) {
            return Ok(prepared);
        }
        let page = |at: usize| (HEADER + at) / PAGE * PAGE;
        let begin = page(from.max(prepared));
        let end = page(from + PREPARED_ROOM + PAGE - 1).min(self.mapping.size);
        // SAFETY: the range is page-aligned and within the mapping; the advice changes no content.
        let mapped = unsafe {
            madvise(self.mapping.base.add(begin).cast(), end - begin, Advice::LinuxPopulateWrite)
        };
        // Nothing was read yet: the log continues in another file. Kernels before 5.14 cannot do this, and any other
        // failure is no worse than not trying.
        if mapped == Err(Errno::FAULT) {
            self.guard.set_damaged();
            return Err(Errno::FAULT.into());
        }
        self.prepared.store(end - HEADER, Ordering::Relaxed);
        Ok(end - HEADER)
    }

    fn publish(&self, length: usize) {
        self.word(WORD_LENGTH).store(length as u64, Ordering::Release);
        self.length.store(length, Ordering::Release);
    }

    /// Empties the file for bytes from another offset on. This needs no room on disk and no
    /// write access to the folder: a file that cannot be renamed keeps its name, since the header
    /// contains its start. A file that was removed cannot be reused.
    pub(super) fn reuse(&mut self, path: &Path, start: u64) -> io::Result<()> {
        // Even if it stays, it does not count: it names another start.
        let _ = std::fs::remove_file(index::path(&self.path));
        match std::fs::rename(&self.path, path) {
            Ok(()) => path.clone_into(&mut self.path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        // Zeros first, so that old bytes are not recovered as new ones. If a server dies halfway,
        // the recorded end is too late, never too early.
        // SAFETY: nobody else holds this segment, and the range is all of the mapping's data.
        unsafe { self.mapping.base.add(HEADER).write_bytes(0, self.capacity()) };
        self.replace_header_marks(&[]);
        self.replace_sizes(&[]);
        self.word(WORD_NEXT).store(0, Ordering::Release);
        self.word(WORD_START).store(start, Ordering::Release);
        self.start = start;
        self.prepared = AtomicUsize::new(0);
        self.publish(0);
        Ok(())
    }

    /// Records where the next one begins, so that it is known to have existed if it goes missing.
    pub(super) fn set_next(&self, start: u64) {
        self.word(WORD_NEXT).store(start, Ordering::Release);
    }

    /// Whether there was a next one.
    pub(super) fn has_next(&self) -> bool {
        self.word(WORD_NEXT).load(Ordering::Acquire) != 0
    }

    /// When its output was read: the times in the index beside it, then those in its header.
    pub(super) fn marks(&self) -> Vec<TimeMark> {
        let _guard = self.marks_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marks = index::read_marks(&self.path, self.start);
        marks.retain(|mark| mark.offset <= self.end());
        for mark in self.header_marks() {
            times::push(&mut marks, mark);
        }
        marks
    }

    /// For the writer, which must not wait; `None` while somebody reads the times.
    pub(super) fn try_lock_marks(&self) -> Option<MutexGuard<'_, ()>> {
        match self.marks_lock.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The times in the header. Those of another file that used this one before do not count.
    pub(super) fn header_marks(&self) -> Vec<TimeMark> {
        let mut marks = Vec::new();
        for at in 0..HEADER_MARKS {
            let [offset, time] = self.mark_words(at);
            let wall_ms = time.load(Ordering::Acquire);
            let mark = TimeMark { offset: offset.load(Ordering::Relaxed), wall_ms };
            if wall_ms == 0 {
                break;
            }
            if (self.start..=self.end()).contains(&mark.offset) {
                times::push(&mut marks, mark);
            }
        }
        marks
    }

    /// How many places for times in the header are used, including those of times that do not
    /// count.
    pub(super) fn header_marks_used(&self) -> usize {
        let is_used = |at: &usize| self.mark_words(*at)[1].load(Ordering::Acquire) != 0;
        (0..HEADER_MARKS).take_while(is_used).count()
    }

    /// Called by the writer: stores a time in the header. The time itself is stored last: before, it is unused.
    pub(super) fn set_header_mark(&self, at: usize, mark: TimeMark) {
        let [offset, time] = self.mark_words(at);
        offset.store(mark.offset, Ordering::Relaxed);
        time.store(mark.wall_ms, Ordering::Release);
    }

    /// Called by the writer. If a server dies halfway, what is left is in order, or is ignored because it is not.
    pub(super) fn replace_header_marks(&self, marks: &[TimeMark]) {
        for (at, mark) in marks.iter().enumerate() {
            self.set_header_mark(at, *mark);
        }
        for at in (marks.len()..HEADER_MARKS).rev() {
            self.set_header_mark(at, TimeMark { offset: 0, wall_ms: 0 });
        }
    }

    fn mark_words(&self, at: usize) -> [&AtomicU64; 2] {
        [self.word(WORD_TIMES + 2 * at), self.word(WORD_TIMES + 2 * at + 1)]
    }

    /// The resizes in its output.
    pub(super) fn sizes(&self) -> Vec<SizeMark> {
        let _guard = self.sizes_lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.stored_sizes()
    }

    /// Those of another file that used this one before do not count.
    fn stored_sizes(&self) -> Vec<SizeMark> {
        let mut marks = Vec::new();
        for at in 0..HEADER_SIZES {
            let [offset, sizes] = self.size_words(at);
            let both = sizes.load(Ordering::Acquire);
            if both == 0 {
                break;
            }
            let mark = SizeMark::new(offset.load(Ordering::Relaxed), both);
            if (self.start..=self.end()).contains(&mark.offset) {
                sizes::push(&mut marks, mark);
            }
        }
        marks
    }

    /// Records a resize. One that is older than the last is of a run that is over.
    pub(super) fn note_size(&self, mark: SizeMark) {
        let _guard = self.sizes_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marks = self.stored_sizes();
        if marks.last().is_some_and(|last| mark.offset < last.offset) {
            return;
        }
        if marks.len() < HEADER_SIZES {
            return self.set_size(marks.len(), mark);
        }
        marks.push(mark);
        sizes::join(&mut marks, HEADER_SIZES / 2);
        self.replace_sizes(&marks);
    }

    /// Called by the writer: resizes in output that was lost would count again once the output reaches their offsets.
    pub(super) fn drop_lost_sizes(&self) {
        let _guard = self.sizes_lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace_sizes(&self.stored_sizes());
    }

    fn replace_sizes(&self, marks: &[SizeMark]) {
        for (at, mark) in marks.iter().enumerate() {
            self.set_size(at, *mark);
        }
        for at in (marks.len()..HEADER_SIZES).rev() {
            self.size_words(at)[1].store(0, Ordering::Release);
        }
    }

    /// The sizes are stored last: before, the place is unused.
    fn set_size(&self, at: usize, mark: SizeMark) {
        let [offset, sizes] = self.size_words(at);
        offset.store(mark.offset, Ordering::Relaxed);
        sizes.store(mark.sizes(), Ordering::Release);
    }

    fn size_words(&self, at: usize) -> [&AtomicU64; 2] {
        [self.word(WORD_SIZES + 2 * at), self.word(WORD_SIZES + 2 * at + 1)]
    }

    /// The key frames in the index that are of this output, in their order.
    pub(super) fn key_frames(&self) -> Vec<KeyFrame> {
        let guard = self.marks_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let found = index::read_frames(&self.path, self.start);
        drop(guard);
        let is_ours = |found: &index::FrameRecord| {
            self.before(found.frame.offset).is_some_and(|before| found.is_after(before))
        };
        let mut frames: Vec<_> = found.into_iter().filter(is_ours).map(|it| it.frame).collect();
        frames.sort_by_key(|frame| frame.offset);
        frames
    }

    /// Adds a key frame to the index. `false` if there is no room for it in the index's share of the log.
    pub(super) fn put_key_frame(&self, frame: &KeyFrame) -> io::Result<bool> {
        let Some(before) = self.before(frame.offset) else { return Ok(false) };
        let _guard = self.marks_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let most = index::most_bytes(self.disk_bytes());
        let added = index::append_frame(&self.path, self.start, frame, before, most)?;
        if added && !self.path.exists() {
            // The file was dropped meanwhile, and its index is not there without it.
            let _ = std::fs::remove_file(index::path(&self.path));
            return Ok(false);
        }
        Ok(added)
    }

    /// Some bytes before an offset; `None` if there are too few, or the offset is not in this file.
    fn before(&self, offset: u64) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.written().get(at.checked_sub(COMPARED_BYTES)?..at)
    }

    /// The bytes written so far. If the file fails in the meantime they are zeros.
    pub(super) fn written(&self) -> &[u8] {
        // SAFETY: bytes below the length are initialised, mapped as long as `self` lives, and never
        // written again.
        unsafe { std::slice::from_raw_parts(self.mapping.base.add(HEADER), self.length()) }
    }

    /// Whether nothing in it can be read or stored any more.
    pub(super) fn is_damaged(&self) -> bool {
        self.guard.is_damaged()
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.length() as u64
    }

    pub(super) fn room(&self) -> usize {
        self.capacity() - self.length()
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.mapping.size as u64
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the pages of some bytes to the page cache: there they do not count as this process's
    /// memory, and reading them loads them again.
    pub(super) fn release(&self, from: usize, to: usize) {
        let page = |at: usize| (HEADER + at) / PAGE * PAGE;
        let (from, to) = (page(from), page(to.min(self.length())));
        if from < to {
            // SAFETY: the range is page-aligned and within the mapping; for a shared file mapping
            // the advice only drops page-table entries, the content is unchanged.
            let _ = unsafe {
                madvise(self.mapping.base.add(from).cast(), to - from, Advice::LinuxDontNeed)
            };
        }
    }

    #[cfg(test)]
    pub(super) fn forget_length(&self, bytes: u64) {
        self.word(WORD_LENGTH).fetch_sub(bytes, Ordering::Relaxed);
    }

    fn length(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    fn capacity(&self) -> usize {
        self.mapping.size - HEADER
    }

    /// A word of the header.
    fn word(&self, n: usize) -> &AtomicU64 {
        // SAFETY: the header is mapped, page-aligned, and its first words are only ever used as
        // atomics.
        unsafe { &*self.mapping.base.add(n * 8).cast::<AtomicU64>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created by `Segment::map` with this base and size, and nothing
        // borrows from it any more.
        let _ = unsafe { munmap(self.base.cast(), self.size) };
    }
}
