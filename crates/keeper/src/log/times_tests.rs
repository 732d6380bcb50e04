//! The times of a log from its writer's and its readers' perspective, through crashes and changes of the clock.

use std::io::Write;
use std::path::PathBuf;

use super::*;

/// Milliseconds since 1970, some day.
const DAY: u64 = 86_400_000;
const NOW: u64 = 20_000 * DAY;

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

    /// Reads bytes at a time.
    fn print(&mut self, now: u64, length: usize) {
        let end = self.log.end() + length as u64;
        while self.log.end() < end {
            // No more than the pipe holds.
            let piece = (end - self.log.end()).min(30_000) as usize;
            self.pipe.1.write_all(&vec![b'x'; piece]).unwrap();
            self.log.set_time(now);
            let until = self.log.end() + piece as u64;
            while self.log.end() < until {
                if !self.log.has_room() {
                    self.log.make_room().unwrap();
                }
                self.log.read_from(&self.pipe.0, piece).unwrap();
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

    fn time_of(&self, offset: u64) -> Option<u64> {
        time_at(&self.log.reader().times(offset, offset + 1), offset)
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        files::ending_in(self.dir.path(), ending).unwrap()
    }
}

/// A simple generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn every_byte_has_a_time_after_any_crashes() {
    for seed in 0..6 {
        let mut numbers = Numbers(seed);
        let mut written = Written::new(64 << 20);
        let (mut now, mut printed) = (NOW, Vec::new());
        for _ in 0..1_500 {
            now += numbers.below(4) * 90 + numbers.below(20) / 19 * 30_000;
            let length = 1 + numbers.below(300) as usize + numbers.below(60) as usize / 59 * 9_000;
            printed.push((written.log.end(), now));
            written.print(now, length);
            if numbers.below(40) == 0 {
                written.crash();
            }
        }
        for (offset, at) in &printed {
            let told = written.time_of(*offset).unwrap();
            assert!(told <= *at, "seed {seed}: told {told} for {at}");
            // Exact for what is new, a share of its age for the rest.
            let error = (now - at) / 8 + times::INTERVAL_MS;
            assert!(at - told <= error, "seed {seed}: {} ms early, {} ms old", at - told, now - at);
        }
        let index: u64 = written.files("index").iter().map(|f| f.metadata().unwrap().len()).sum();
        assert!(index <= 4_112 * written.files("log").len() as u64, "{index}");
    }
}

#[test]
fn the_time_is_noted_before_the_read_so_no_crash_separates_them() {
    let mut written = Written::new(64 << 20);
    written.print(NOW, 10);
    // Typing is checked for an echo that does not come.
    for tries in 0..300 {
        written.log.set_time(NOW + DAY + tries * 200);
        rustix::io::ioctl_fionbio(&written.pipe.0, true).unwrap();
        assert!(written.log.read_from(&written.pipe.0, 10).is_err());
    }
    assert_eq!(written.files("index"), [] as [PathBuf; 0], "one mark was moved all the time");
    written.print(NOW + 2 * DAY, 5);
    written.crash();
    assert_eq!((written.time_of(9), written.time_of(10)), (Some(NOW), Some(NOW + 2 * DAY)));
    assert_eq!(written.log.last_time(), Some(NOW + 2 * DAY));
}

#[test]
fn times_are_dropped_with_their_files() {
    let mut written = Written::new(700 << 10);
    for n in 0..30_000 {
        written.print(NOW + n * 500, 40);
    }
    let (logs, indexes) = (written.files("log"), written.files("index"));
    assert!(logs.len() < 4 && !indexes.is_empty());
    assert!(indexes.iter().all(|index| logs.contains(&index.with_extension("log"))));
    let start = written.log.reader().start();
    assert!(start > 0 && written.time_of(start).is_some());
    // 0.1.0 removes log files without their indexes.
    std::fs::write(written.dir.path().join("00000000000000000007.index"), "stray").unwrap();
    // A server was killed while it rewrote an index.
    std::fs::write(logs[0].with_extension("index.tmp"), "unfinished").unwrap();
    written.crash();
    written.print(NOW + DAY, 2 << 20);
    assert_eq!(written.files("index"), indexes_of(&written));
    assert_eq!(written.files("tmp"), [] as [PathBuf; 0]);
}

#[test]
fn times_of_output_that_was_lost_do_not_count_for_later_output() {
    let mut written = Written::new(64 << 20);
    written.print(NOW, 10);
    // The header reached the disk before a loss of power, and the output did not.
    let segment = written.log.current.clone().unwrap();
    for at in 1..4 {
        let mark = TimeMark { offset: 100 * at as u64, wall_ms: NOW + DAY };
        segment.set_header_mark(at, mark);
    }
    drop(segment);
    written.crash();
    written.print(NOW + 1_000, 1_000);
    assert_eq!((written.time_of(5), written.time_of(1_000)), (Some(NOW), Some(NOW + 1_000)));
    written.print(NOW + 2_000, 10);
    assert_eq!(written.time_of(1_015), Some(NOW + 2_000));
}

fn indexes_of(written: &Written) -> Vec<PathBuf> {
    let all = written.files("log").into_iter().map(|log| index::path(&log));
    all.filter(|index| index.exists()).collect()
}

#[test]
fn a_reused_file_has_no_old_times() {
    let mut written = Written::new(64 << 20);
    for n in 0..200 {
        written.print(NOW + n * 500, 40);
    }
    assert_eq!(written.files("index").len(), 1);
    let end = written.log.end();
    assert_eq!(written.log.reuse_oldest(end).unwrap(), Reuse::Done);
    assert_eq!(written.files("index"), [] as [PathBuf; 0]);
    written.print(NOW + DAY, 10);
    written.crash();
    assert_eq!(written.time_of(end), Some(NOW + DAY));
}

#[test]
fn a_file_that_an_older_version_reused_has_no_old_times() {
    let mut written = Written::new(64 << 20);
    written.print(NOW, 500);
    // 0.1.0 changes the start and leaves the rest of the header.
    let segment = written.log.segments.last().unwrap();
    let path = segment.path().to_owned();
    drop(segment);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..16].copy_from_slice(&9_000_u64.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
    written.crash();
    assert_eq!((written.log.reader().start(), written.time_of(9_000)), (9_000, None));
    written.print(NOW + DAY, 5);
    assert_eq!(written.time_of(written.log.end() - 1), Some(NOW + DAY));
}

#[test]
fn output_of_an_older_version_has_no_time() {
    let mut written = Written::new(64 << 20);
    fill_without_time(&mut written, 70_000);
    assert_eq!(written.log.reader().times(0, u64::MAX), []);
    written.print(NOW, 10);
    assert_eq!((written.time_of(69_999), written.time_of(70_000)), (None, Some(NOW)));
    let times = written.log.reader().times(0, u64::MAX);
    assert_eq!(times, [TimeMark { offset: 70_000, wall_ms: NOW }]);
}

fn fill_without_time(written: &mut Written, length: usize) {
    let mut left = length;
    while left > 0 {
        written.pipe.1.write_all(b"yyyyyyyyyy").unwrap();
        if !written.log.has_room() {
            written.log.make_room().unwrap();
        }
        left -= written.log.read_from(&written.pipe.0, 10).unwrap();
    }
}

#[test]
fn without_an_index_the_times_in_the_header_are_thinned() {
    let mut written = Written::new(64 << 20);
    written.print(NOW, 1);
    let path = written.files("log").pop().unwrap();
    // A folder in its place: it cannot be written.
    std::fs::create_dir(index::path(&path)).unwrap();
    for n in 1..1_000 {
        written.print(NOW + n * 1_000, 1);
    }
    written.crash();
    assert_eq!((written.time_of(0), written.time_of(999)), (Some(NOW), Some(NOW + 999_000)));
    let error = NOW + 500_000 - written.time_of(500).unwrap();
    assert!(error < 250_000, "{error}");
}
