//! One file of a log: a page that says what it is and how much of it is written, then the bytes.
//! It is allocated in full before it is mapped: a write that found no room on the disk would end
//! the process, and a fault inside a read would lose what was read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

const PAGE: usize = 4096;

/// The page before the bytes.
const HEADER: usize = PAGE;

const MAGIC: u64 = u64::from_ne_bytes(*b"patlog01");

#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    base: *mut u8,
    size: usize,
    start: u64,
}

// SAFETY: the mapping lives as long as the value and is never moved. Its one writer appends: bytes
// below the published length are never written again, and the length itself is atomic.
unsafe impl Send for Segment {}
// SAFETY: see above; readers look only below the length that they loaded.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a file with room for `bytes`.
    pub(super) fn create(path: &Path, start: u64, bytes: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let size = HEADER + bytes;
        let made = fallocate(&file, FallocateFlags::empty(), 0, size as u64)
            .map_err(io::Error::from)
            .and_then(|()| Self::map(path, &file, size));
        let mut segment = made.inspect_err(|_| drop(std::fs::remove_file(path)))?;
        segment.start = start;
        segment.word(1).store(start, Ordering::Relaxed);
        segment.word(2).store(0, Ordering::Relaxed);
        // Last, so that a file with the mark has the rest.
        segment.word(0).store(MAGIC, Ordering::Release);
        Ok(segment)
    }

    /// Opens a file that was made before.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let damaged = || io::Error::other(format!("{} is no output log", path.display()));
        if size < HEADER {
            return Err(damaged());
        }
        let mut segment = Self::map(path, &file, size)?;
        segment.start = segment.word(1).load(Ordering::Relaxed);
        let length = segment.word(2).load(Ordering::Acquire);
        if segment.word(0).load(Ordering::Acquire) != MAGIC || length > segment.capacity() as u64 {
            return Err(damaged());
        }
        Ok(segment)
    }

    fn map(path: &Path, file: &File, size: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel chooses replaces nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), size, access, MapFlags::SHARED, file, 0)? };
        // Reading ahead would bring in pages that are to be written, as this process's memory.
        // SAFETY: the range is the mapping just made, and the advice changes no content.
        let _ = unsafe { madvise(base, size, Advice::Random) };
        Ok(Self { path: path.to_owned(), base: base.cast(), size, start: 0 })
    }

    /// Takes what was written beyond the recorded length up to the last byte that is not zero: it
    /// was read, and its reader died before it could record it.
    pub(super) fn recover(&self) {
        let length = self.length();
        // SAFETY: the whole file is mapped, and nobody writes to it while it is being opened.
        let all = unsafe { std::slice::from_raw_parts(self.base.add(HEADER), self.capacity()) };
        if let Some(last) = all[length..].iter().rposition(|byte| *byte != 0) {
            self.word(2).store((length + last + 1) as u64, Ordering::Release);
        }
    }

    /// Reads from a PTY behind what is written; returns where in this file the new bytes stand.
    pub(super) fn read_from(&self, pty: impl AsFd, most: usize) -> io::Result<(usize, usize)> {
        use std::os::fd::AsRawFd;
        let from = self.length();
        let room = most.min(self.capacity() - from);
        let pty = pty.as_fd().as_raw_fd();
        // SAFETY: the range lies in the mapping behind the published length, where no reader
        // looks and only this one writer writes.
        let read = unsafe { libc::read(pty, self.base.add(HEADER + from).cast(), room) };
        let Ok(read) = usize::try_from(read) else { return Err(io::Error::last_os_error()) };
        self.word(2).store((from + read) as u64, Ordering::Release);
        Ok((from, from + read))
    }

    /// The bytes written so far.
    pub(super) fn written(&self) -> &[u8] {
        // SAFETY: bytes below the length are initialised, mapped as long as `self` lives, and
        // never written again.
        unsafe { std::slice::from_raw_parts(self.base.add(HEADER), self.length()) }
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
        self.size as u64
    }

    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Gives the pages of some bytes back to the page cache: there they do not count as this
    /// process's memory, and looking at them brings them back.
    pub(super) fn release(&self, from: usize, to: usize) {
        let page = |at: usize| (HEADER + at) / PAGE * PAGE;
        let (from, to) = (page(from), page(to.min(self.length())));
        if from < to {
            // SAFETY: the range is page-aligned and within the mapping; for a shared file mapping
            // the advice only drops page-table entries, the content stays what it is.
            let _ =
                unsafe { madvise(self.base.add(from).cast(), to - from, Advice::LinuxDontNeed) };
        }
    }

    #[cfg(test)]
    pub(super) fn forget_length(&self, bytes: u64) {
        self.word(2).fetch_sub(bytes, Ordering::Relaxed);
    }

    fn length(&self) -> usize {
        // Bounded by the capacity when the file was opened, and by `read_from` since.
        self.word(2).load(Ordering::Acquire) as usize
    }

    fn capacity(&self) -> usize {
        self.size - HEADER
    }

    /// A word of the header: the mark, the start offset, the length.
    fn word(&self, n: usize) -> &AtomicU64 {
        // SAFETY: the header is mapped, page-aligned, and its first words are only ever used as
        // atomics.
        unsafe { &*self.base.add(n * 8).cast::<AtomicU64>() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this base and size, and nothing borrows from
        // it any more.
        let _ = unsafe { munmap(self.base.cast(), self.size) };
    }
}
