//! Resizes and key frames of a log, through crashes, damage and the limit of its bytes.

use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::size::Size;

/// A log that gets its bytes through a pipe.
struct Written {
    dir: tempfile::TempDir,
    log: Log,
    pipe: (io::PipeReader, io::PipeWriter),
}

impl Written {
    fn new(budget: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), budget).unwrap();
        Self { dir, log, pipe: io::pipe().unwrap() }
    }

    /// Prints bytes of which no two stretches are the same.
    fn print(&mut self, length: usize) {
        let end = self.log.end() + length as u64;
        while self.log.end() < end {
            let piece = (end - self.log.end()).min(30_000);
            let text: Vec<u8> = (0..piece).map(|n| byte_at(self.log.end() + n)).collect();
            self.pipe.1.write_all(&text).unwrap();
            let until = self.log.end() + piece;
            while self.log.end() < until {
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                self.log.read_from(&self.pipe.0, piece as usize).unwrap();
            }
        }
    }

    /// Another server opens it. Nothing was closed properly.
    fn crash(&mut self) {
        let budget = self.log.budget;
        let before = std::mem::replace(&mut self.log, Log::unopened(self.dir.path(), 0));
        std::mem::forget(before);
        self.log = Log::open(self.dir.path(), budget).unwrap();
    }

    fn put(&self, offset: u64, length: usize) -> bool {
        let bytes = offset.to_le_bytes().repeat(length.div_ceil(8));
        self.log.reader().put_key_frame(&KeyFrame { offset, bytes }).unwrap()
    }

    /// The offset of the newest frame, whose content is checked.
    fn frame_at(&self, offset: u64) -> Option<u64> {
        let frame = self.log.reader().key_frame(offset)?;
        assert!(frame.bytes.chunks(8).all(|part| part == frame.offset.to_le_bytes()));
        Some(frame.offset)
    }

    fn index_of(&self, offset: u64) -> PathBuf {
        let segments = self.files("log").into_iter().rev();
        let start = |path: &PathBuf| -> u64 {
            path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
        };
        index::path(&segments.into_iter().find(|path| start(path) < offset).unwrap())
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        files::ending_in(self.dir.path(), ending).unwrap()
    }

    fn bytes(&self, ending: &str) -> u64 {
        self.files(ending).iter().map(|file| file.metadata().unwrap().len()).sum()
    }
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8 | 1
}

fn mark(offset: u64, before: u16, after: u16) -> SizeMark {
    let size = |rows| Size { rows, columns: 80 };
    SizeMark { offset, before: size(before), after: size(after) }
}

const MIB: usize = 1 << 20;

#[test]
fn resizes_are_there_after_a_crash_and_go_with_their_output() {
    let mut written = Written::new(3 * MIB as u64);
    let mut expected = Vec::new();
    for n in 0..40 {
        written.print(50_000);
        let resize = mark(written.log.end(), 10 + n, 11 + n);
        written.log.reader().note_size(resize);
        expected.push(resize);
        if n % 7 == 0 {
            written.crash();
        }
    }
    assert_eq!(written.log.reader().sizes(0, u64::MAX), expected);
    let middle = &expected[10..=20];
    assert_eq!(written.log.reader().sizes(middle[0].offset, middle[10].offset), middle);
    written.print(3 * MIB);
    let left = written.log.reader().sizes(0, u64::MAX);
    let start = written.log.reader().start();
    assert!(start > 0 && left.iter().all(|mark| mark.offset >= start) && left.len() < 40);
}

#[test]
fn more_resizes_than_there_is_room_for_are_joined() {
    let mut written = Written::new(64 << 20);
    for n in 0..1_000 {
        written.print(3);
        written.log.reader().note_size(mark(written.log.end(), n, n + 1));
    }
    let sizes = written.log.reader().sizes(0, u64::MAX);
    assert!(sizes.len() > 50 && sizes.len() < 120, "{}", sizes.len());
    assert_eq!(sizes[0].before.rows, 0);
    assert_eq!(sizes.last(), Some(&mark(3_000, 999, 1_000)));
    assert!(sizes.windows(2).all(|pair| pair[0].after == pair[1].before));
    // One of a run that is over.
    written.log.reader().note_size(mark(5, 7, 8));
    assert_eq!(written.log.reader().sizes(0, u64::MAX), sizes);
}

#[test]
fn resizes_in_output_that_was_lost_do_not_count_for_later_output() {
    let mut written = Written::new(64 << 20);
    written.print(100);
    written.log.reader().note_size(mark(50, 24, 30));
    // The header reached the disk before a loss of power, and the output did not.
    written.log.reader().note_size(mark(5_000, 30, 40));
    assert_eq!(written.log.reader().sizes(0, u64::MAX), [mark(50, 24, 30)]);
    written.crash();
    written.print(9_000);
    assert_eq!(written.log.reader().sizes(0, u64::MAX), [mark(50, 24, 30)]);
}

#[test]
fn the_newest_frame_before_an_offset_is_found_after_a_crash() {
    let mut written = Written::new(64 << 20);
    written.print(5 * MIB);
    let offsets = [400_000, 1_500_000, 3_000_000, 5 * MIB as u64];
    assert!(offsets.iter().all(|offset| written.put(*offset, 2_000)));
    written.crash();
    assert_eq!(written.frame_at(399_999), None);
    assert_eq!(written.frame_at(400_000), Some(400_000));
    assert_eq!(written.frame_at(2_999_999), Some(1_500_000));
    assert_eq!(written.frame_at(u64::MAX), Some(5 * MIB as u64));
    // Not in the output, or too near to the start of a file.
    assert!(!written.put(5 * MIB as u64 + 1, 100) && !written.put(0, 100));
}

#[test]
fn an_index_that_is_cut_or_changed_anywhere_costs_only_what_it_says() {
    let mut written = Written::new(64 << 20);
    written.print(3 * MIB);
    let (first, second) = (2_000_000, 2_300_000);
    let index = written.index_of(first);
    assert!(written.put(first, 400));
    let one = std::fs::read(&index).unwrap();
    assert!(written.put(second, 400));
    let whole = std::fs::read(&index).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x21;
        for bytes in [&changed[..], &whole[..at], &[&whole[..at], &[0; 50]].concat()] {
            std::fs::write(&index, bytes).unwrap();
            let expected = bytes.starts_with(&one).then_some(first);
            assert_eq!(written.frame_at(u64::MAX), expected, "at {at}");
        }
        // It continues after what is intact.
        assert!(written.put(second + 1, 400), "at {at}");
        assert_eq!(written.frame_at(u64::MAX), Some(second + 1), "at {at}");
    }
}

#[test]
fn a_frame_of_other_output_is_ignored() {
    let mut written = Written::new(64 << 20);
    written.print(3 * MIB);
    let (real, at) = (1_600_000, 2_000_000);
    assert!(written.put(real, 400) && written.put(at, 400));
    let path = written.index_of(at);
    let log = path.with_extension("log");
    let start: u64 = log.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    // It says that it was taken later than it was.
    let frame = KeyFrame { offset: at + 1_000, bytes: vec![1; 400] };
    let before: Vec<u8> = (at - 256..at).map(byte_at).collect();
    assert!(index::append_frame(&log, start, &frame, &before, u64::MAX).unwrap());
    // It is of output that a loss of power has taken.
    let beyond = KeyFrame { offset: 100 * MIB as u64, bytes: vec![1; 400] };
    assert!(index::append_frame(&log, start, &beyond, &before, u64::MAX).unwrap());
    assert_eq!(written.frame_at(u64::MAX), Some(at));
    // Nor does it hide those that follow.
    assert!(written.put(at + 9_000, 400));
    assert_eq!(written.frame_at(u64::MAX), Some(at + 9_000));
    // A folder in its place.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(written.frame_at(u64::MAX), None);
    let frame = KeyFrame { offset: at, bytes: vec![1; 400] };
    assert!(written.log.reader().put_key_frame(&frame).is_err());
}

#[test]
fn all_that_is_beside_a_log_takes_one_percent_of_it() {
    let mut written = Written::new(6 * MIB as u64);
    let (mut now, mut frames) = (1 << 40, 0);
    for n in 0..4_000 {
        now += 25;
        written.log.set_time(now);
        written.print(3_000);
        // Far more, and larger ones, than a server makes.
        if n % 20 == 0 {
            frames += u32::from(written.put(written.log.end(), 1 + n * 37 % 9_000));
        }
        let (log, index) = (written.bytes("log"), written.bytes("index"));
        if log > 1_300_000 {
            assert!(index * 100 <= log, "{index} bytes for {log} after {n} turns");
        }
    }
    assert!(frames > 10, "{frames}");
    let (logs, indexes) = (written.files("log"), written.files("index"));
    assert!(logs.len() < 8, "the oldest are dropped");
    assert!(indexes.iter().all(|index| logs.contains(&index.with_extension("log"))));
    let start = written.log.reader().start();
    assert!(written.frame_at(u64::MAX).is_some_and(|offset| offset > start));
    assert_eq!(written.frame_at(start), None, "the frames were dropped with their output");
}
