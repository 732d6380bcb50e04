//! A log from its writer's and its readers' perspective, intact and damaged.

use std::io::Write;
use std::path::PathBuf;

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
            if !log.has_room() {
                log.make_room().unwrap();
            }
            let read = log.read_from(&reader, 16 << 10).unwrap();
            assert_eq!(log.end(), before + read as u64);
            arrived += read;
        }
        left -= piece.len();
    }
}

#[test]
fn bytes_are_read_back_across_files_and_a_reopening() {
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
fn copied_bytes_are_released_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 5_000_000);
    let reader = log.reader();
    assert!(resident_kib(dir.path()) > 4_000);
    assert_eq!(reader.copy(0, usize::MAX).bytes.len(), 5_000_000);
    // The header of each file, and the page where it ends.
    assert!(resident_kib(dir.path()) < 100, "{}", resident_kib(dir.path()));
}

/// A page fault in the middle of a read may fail, and then bytes are lost: see `Segment::prepare`.
#[test]
fn pages_are_mapped_before_they_are_read_into() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    log.make_room().unwrap();
    let (reader, _writer) = io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    let read = log.read_from(&reader, 16 << 10);
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    // The header and three pages, although nothing was read.
    assert_eq!(resident_kib(dir.path()), 16);
}

/// The resident memory of a folder's mapped files.
fn resident_kib(folder: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut ours, mut sum) = (false, 0);
    for line in maps.lines() {
        match line.strip_prefix("Rss:") {
            Some(rss) if ours => sum += rss.trim_end_matches("kB").trim().parse::<u64>().unwrap(),
            // A mapping begins with its addresses and ends with its file; fields contain a colon.
            _ if line.split(' ').next().unwrap().contains('-') => {
                ours = line.contains(folder.to_str().unwrap());
            }
            _ => {}
        }
    }
    sum
}

#[test]
fn the_oldest_file_is_removed_over_the_budget_and_offsets_only_grow() {
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
fn bytes_that_were_read_but_not_recorded_are_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 1_000);
    // As if the server had died between reading and recording.
    log.segments.last().unwrap().forget_length(400);
    let again = Log::open(dir.path(), 64 << 20).unwrap();
    assert_eq!(again.end(), 1_000);
    assert_eq!(again.reader().copy(0, usize::MAX).bytes, pattern(0, 1_000));
}

/// The first file of a log.
fn first_file(folder: &Path) -> PathBuf {
    files::path(folder, 0)
}

fn truncate(path: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_file_that_is_not_a_log_is_set_aside_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(first_file(dir.path()), "no log").unwrap();
    std::fs::create_dir(files::path(dir.path(), 7)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", files::path(dir.path(), 8)).unwrap();
    let mut log = Log::open(dir.path(), 1 << 20).unwrap();
    assert!(log.is_empty() && log.is_end_missing());
    let aside = dir.path().join("00000000000000000000.log.damaged");
    assert_eq!(std::fs::read(aside).unwrap(), b"no log");
    fill(&mut log, 100);
    assert_eq!(log.reader().copy(0, 1_000).bytes, pattern(0, 100));
}

#[test]
fn an_invalid_header_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    for (word, value) in [(0, 1), (1, u64::MAX - 5), (2, u64::MAX), (2, (60 << 10) + 1)] {
        let mut log = Log::open(dir.path(), 1 << 20).unwrap();
        fill(&mut log, 100);
        drop(log);
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(first_file(dir.path())).unwrap();
        file.write_all_at(&u64::to_ne_bytes(value), word * 8).unwrap();
        assert!(Log::open(dir.path(), 1 << 20).unwrap().is_empty(), "{word} {value}");
    }
}

#[test]
fn a_header_changed_while_in_use_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 1 << 20).unwrap();
    fill(&mut log, 100);
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(first_file(dir.path())).unwrap();
    file.write_all_at(&[0xff; 32], 0).unwrap();
    assert_eq!(log.reader().copy(0, usize::MAX).bytes, pattern(0, 100));
}

/// Accessing a truncated file raises SIGBUS; here it costs that file's bytes.
#[test]
fn a_truncated_file_costs_only_its_own_bytes() {
    for kept in [0, 4096, 20_000] {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), 64 << 20).unwrap();
        fill(&mut log, 400_000);
        let reader = log.reader();
        let lost = 60 << 10;
        truncate(&first_file(dir.path()), kept);
        // Whether the first read meets the fault, or the second knows about it.
        for _ in 0..2 {
            let copied = reader.copy(0, usize::MAX);
            assert_eq!((copied.offset, copied.end()), (lost, 400_000), "truncated to {kept}");
            assert_eq!(copied.bytes, pattern(lost, 400_000 - 61_440));
        }
        assert_eq!((reader.start(), reader.end()), (lost, 400_000));
        fill(&mut log, 1_000_000);
        assert_eq!(reader.copy(0, usize::MAX).bytes, pattern(lost, 1_400_000 - 61_440));
        let again = Log::open(dir.path(), 64 << 20).unwrap();
        assert_eq!((again.reader().start(), again.end()), (lost, 1_400_000));
        assert!(!again.is_end_missing());
    }
}

#[test]
fn a_file_truncated_while_being_written_is_dropped_and_offsets_continue() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 10_000);
    truncate(&first_file(dir.path()), 0);
    let (pipe, mut writer) = io::pipe().unwrap();
    writer.write_all(b"lost").unwrap();
    assert_eq!(log.read_from(&pipe, 100).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    assert!(!log.has_room());
    // Without a new file, output is counted.
    writer.write_all(b"counted").unwrap();
    let counted = log.read_from(&pipe, 100).unwrap() as u64;
    assert_eq!(log.end(), 10_000 + counted);
    let copied = log.reader().copy(0, 100);
    assert_eq!((copied.offset, copied.bytes.len()), (10_000 + counted, 0));
    fill(&mut log, 100);
    let copied = log.reader().copy(0, usize::MAX);
    assert_eq!((copied.offset, copied.bytes), (10_000 + counted, pattern(10_000 + counted, 100)));
}

#[test]
fn removed_files_and_folders_do_not_prevent_writing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("p1");
    let mut log = Log::open(&folder, 64 << 20).unwrap();
    fill(&mut log, 100_000);
    std::fs::remove_dir_all(&folder).unwrap();
    fill(&mut log, 300_000);
    assert_eq!(log.reader().copy(0, usize::MAX).bytes, pattern(0, 400_000));
    let again = Log::open(&folder, 64 << 20).unwrap();
    assert_eq!((again.reader().start(), again.end()), (319_488, 400_000));
    // If the last one is gone, it is known that it existed, and no offset is used twice.
    drop((log, again));
    fill(&mut Log::open(&folder, 64 << 20).unwrap(), 2_000_000);
    let last = files::ending_in(&folder, "log").unwrap().pop().unwrap();
    std::fs::remove_file(last).unwrap();
    let mut log = Log::open(&folder, 64 << 20).unwrap();
    assert!(log.is_end_missing());
    log.skip_to(5_000_000);
    assert_eq!(log.end(), 5_000_000);
    fill(&mut log, 100);
    let copied = log.reader().copy(4_000_000, usize::MAX);
    assert_eq!((copied.offset, copied.bytes), (5_000_000, pattern(5_000_000, 100)));
}

#[test]
fn a_gap_is_skipped_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 100);
    log.skip_to(1_000);
    fill(&mut log, 50);
    let reader = log.reader();
    let before = reader.copy(0, usize::MAX);
    assert_eq!((before.offset, before.end(), before.ends_at_gap), (0, 100, true));
    for from in [100, 500, 1_000] {
        let after = reader.copy(from, usize::MAX);
        assert_eq!((after.offset, after.end(), after.ends_at_gap), (1_000, 1_050, false));
    }
    let mut shown = Vec::new();
    let end = reader.visit(0, usize::MAX, |at, piece| {
        shown.push((at, piece.len()));
        true
    });
    assert_eq!((end, shown), (1_050, vec![(0, 100), (1_000, 50)]));
    log.skip_to(2_000);
    assert_eq!(reader.visit(1_050, usize::MAX, |_, _| true), 2_000, "a gap at the end, too");
}

#[test]
fn the_oldest_file_is_reused_unless_it_is_needed_or_being_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    assert_eq!(log.reuse_oldest(0).unwrap(), Reuse::None);
    fill(&mut log, 100_000);
    let reader = log.reader();
    assert_eq!(log.reuse_oldest(61_439).unwrap(), Reuse::Busy, "a byte of it is needed");
    reader.visit(0, 10, |_, _| {
        assert_eq!(log.reuse_oldest(100_000).unwrap(), Reuse::Busy, "it is being read");
        true
    });
    assert_eq!(log.reuse_oldest(100_000).unwrap(), Reuse::Done);
    assert_eq!((reader.start(), reader.end()), (61_440, 100_000));
    fill(&mut log, 61_440);
    assert_eq!(reader.copy(0, usize::MAX).bytes, pattern(61_440, 100_000));
    // Down to a single one, which is its own oldest.
    assert_eq!(log.reuse_oldest(u64::MAX).unwrap(), Reuse::Done);
    assert_eq!(log.drop_oldest(), 65_536);
    assert_eq!(log.reuse_oldest(u64::MAX).unwrap(), Reuse::Done);
    assert_eq!((reader.start(), reader.end()), (161_440, 161_440));
    fill(&mut log, 500);
    let again = Log::open(dir.path(), 64 << 20).unwrap();
    assert_eq!((again.reader().start(), again.end()), (161_440, 161_940), "also after reopening");
    assert_eq!(again.reader().copy(0, usize::MAX).bytes, pattern(161_440, 500));
}

#[test]
fn a_gap_stays_in_place_while_the_oldest_file_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 100);
    log.skip_to(1_000);
    assert_eq!(log.reuse_oldest(0).unwrap(), Reuse::Busy, "its bytes are needed");
    assert!(!log.has_room(), "nothing is written before the gap");
    fill(&mut log, 50);
    let after = log.reader().copy(100, usize::MAX);
    assert_eq!((after.offset, after.bytes), (1_000, pattern(1_000, 50)));
}

/// As in a read-only folder.
#[test]
fn a_file_that_cannot_be_renamed_is_reused_under_its_old_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    fill(&mut log, 100_000);
    // A folder has the new name.
    std::fs::create_dir(files::path(dir.path(), 100_000)).unwrap();
    assert_eq!(log.reuse_oldest(100_000).unwrap(), Reuse::Done);
    assert!(first_file(dir.path()).exists());
    assert_eq!(
        (log.reader().start(), log.end()),
        (61_440, 100_000),
        "only that file's bytes are gone"
    );
    fill(&mut log, 500);
    std::fs::remove_dir(files::path(dir.path(), 100_000)).unwrap();
    let again = Log::open(dir.path(), 64 << 20).unwrap();
    assert_eq!(again.reader().copy(0, usize::MAX).bytes, pattern(61_440, 39_060));
    drop((log, again));
    // A file that was removed is skipped.
    let mut log = Log::open(dir.path(), 64 << 20).unwrap();
    let oldest = files::path(dir.path(), 61_440);
    std::fs::remove_file(&oldest).unwrap();
    assert_eq!(log.reuse_oldest(u64::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!oldest.exists());
}

#[test]
fn a_log_that_cannot_be_opened_yet_is_opened_later() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("p1");
    fill(&mut Log::open(&folder, 64 << 20).unwrap(), 1_000);
    let mut log = Log::unopened(&folder, 64 << 20);
    log.skip_to(5_000);
    let (pipe, mut writer) = io::pipe().unwrap();
    writer.write_all(b"counted").unwrap();
    assert_eq!(log.read_from(&pipe, 100).unwrap(), 7);
    let reader = log.reader();
    assert_eq!((reader.start(), reader.end()), (5_007, 5_007));
    log.make_room().unwrap();
    assert!(log.is_open());
    assert_eq!((reader.start(), reader.end()), (0, 5_007));
    fill(&mut log, 10);
    assert_eq!(reader.copy(1_000, 100).bytes, pattern(5_007, 10));
}

/// A fault outside of logs ends the process as usual.
#[test]
fn a_bus_error_elsewhere_ends_the_process_as_before() {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let dir = tempfile::tempdir().unwrap();
    fill(&mut Log::open(dir.path(), 1 << 20).unwrap(), 10);
    let file = std::fs::File::create_new(dir.path().join("other")).unwrap();
    file.set_len(4096).unwrap();
    // SAFETY: a new mapping replaces nothing.
    let mapped = unsafe {
        mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap()
    };
    file.set_len(0).unwrap();
    for sent in [false, true] {
        // SAFETY: the child only makes system calls and reads memory before it exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above; the mapping exists, its file does not.
            unsafe {
                match sent {
                    true => drop(libc::raise(libc::SIGBUS)),
                    false => drop(std::ptr::read_volatile(mapped.cast::<u8>())),
                }
                libc::_exit(0);
            }
        }
        let mut status = 0;
        // SAFETY: `child` is our own, and the pointer is to a local variable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status:x}");
    }
}
