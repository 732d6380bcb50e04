//! The side index of one log file: records about its output, in a file beside it. It begins with a magic number and
//! the start of the log file. Each record is
//!
//! ```text
//! kind (1 byte) | length of the payload (varint) | payload | checksum (4 bytes)
//! ```
//!
//! Records are only appended. Those after the first one that is not intact do not count: after a loss of power the
//! end of the file may be anything. Records of an unknown kind are skipped, and kept when the file is rewritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::key_frame::KeyFrame;
use super::times::{self, TimeMark};

const MAGIC: [u8; 8] = *b"patidx01";

/// The magic number, and the start of the log file.
const HEAD: usize = 16;

/// A time. 0 is never used, because the rest of a torn file may be zeros, and 2 is not used yet.
const KIND_TIME: u8 = 1;

/// A key frame.
const KIND_FRAME: u8 = 3;

/// Bytes of times beside one log file: 0.4 % of a large one. The rest of the index's share is for key frames.
const TIME_BYTES: usize = 4096;

/// The share of an index in the bytes of its log.
const SHARE: u64 = 100;

/// How many are left when they no longer fit. A record has at most 16 bytes.
const THINNED: usize = TIME_BYTES / 16;

/// The ending of an index that is being rewritten.
pub(super) const UNFINISHED: &str = "tmp";

/// No more of a file is read. Ours are much smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The index beside a log file.
pub(super) fn path(log: &Path) -> PathBuf {
    log.with_extension("index")
}

/// An index as it was read.
#[derive(Debug, Default)]
struct Index {
    marks: Vec<TimeMark>,
    /// Records of other kinds, unchanged.
    others: Vec<u8>,
    /// The length of what is intact; 0 if the file is missing, or belongs to other output.
    intact: usize,
}

/// The times beside a log file; none if there is no index.
pub(super) fn read_marks(log: &Path, start: u64) -> Vec<TimeMark> {
    read(&path(log), start).marks
}

/// A key frame as it is stored.
#[derive(Debug)]
pub(super) struct FrameRecord {
    pub(super) frame: KeyFrame,
    /// The checksum of some bytes before it.
    before: u32,
}

impl FrameRecord {
    /// Whether these are the bytes before it.
    pub(super) fn is_after(&self, before: &[u8]) -> bool {
        self.before == checksum(before)
    }

    fn parse(mut payload: &[u8], start: u64) -> Option<Self> {
        let offset = start.checked_add(take_varint(&mut payload)?)?;
        let (before, bytes) = payload.split_first_chunk::<4>()?;
        let frame = KeyFrame { offset, bytes: bytes.to_vec() };
        Some(Self { frame, before: u32::from_le_bytes(*before) })
    }
}

/// The key frames beside a log file.
pub(super) fn read_frames(log: &Path, start: u64) -> Vec<FrameRecord> {
    let index = read(&path(log), start);
    let (mut rest, mut frames) = (index.others.as_slice(), Vec::new());
    while let Some((record, after)) = split_record(rest) {
        rest = after;
        if record.kind == KIND_FRAME {
            frames.extend(FrameRecord::parse(record.payload, start));
        }
    }
    frames
}

/// Adds a key frame to the index beside a log file, unless it would then have more than `most` bytes. `before`: some
/// bytes before the frame.
pub(super) fn append_frame(
    log: &Path,
    start: u64,
    frame: &KeyFrame,
    before: &[u8],
    most: u64,
) -> io::Result<bool> {
    let path = path(log);
    let index = read(&path, start);
    let mut payload = Vec::with_capacity(frame.bytes.len() + 16);
    put_varint(&mut payload, frame.offset.saturating_sub(start));
    payload.extend_from_slice(&checksum(before).to_le_bytes());
    payload.extend_from_slice(&frame.bytes);
    let mut record = Vec::with_capacity(payload.len() + 8);
    put_record(&mut record, KIND_FRAME, &payload);
    // All times that may still come are counted.
    if (HEAD + TIME_BYTES + index.others.len() + record.len()) as u64 > most {
        return Ok(false);
    }
    append_records(&path, start, &index, record)?;
    Ok(true)
}

/// The most bytes of the indexes of a log with this many bytes on disk.
pub(super) fn most_bytes(log_bytes: u64) -> u64 {
    log_bytes / SHARE
}

/// The bytes of the index beside a log file.
pub(super) fn bytes(log: &Path) -> u64 {
    std::fs::metadata(path(log)).map_or(0, |metadata| metadata.len())
}

/// The bytes that an index may still get for times.
pub(super) const BYTES_TO_COME: u64 = (HEAD + TIME_BYTES) as u64;

/// Adds times to the index beside a log file, which is created if it is missing.
pub(super) fn append(log: &Path, start: u64, new: &[TimeMark]) -> io::Result<()> {
    let path = path(log);
    let mut index = read(&path, start);
    let last = index.marks.last().map_or(0, |mark| mark.offset);
    let is_first = index.marks.is_empty();
    let new: Vec<_> = new.iter().copied().filter(|m| is_first || m.offset > last).collect();
    let added = encode(&new, start);
    if encode(&index.marks, start).len() + added.len() > TIME_BYTES {
        index.marks.extend(new);
        return rewrite(&path, start, &index);
    }
    append_records(&path, start, &index, added)
}

/// Adds records after those that are intact.
fn append_records(path: &Path, start: u64, index: &Index, added: Vec<u8>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(path)?;
    if file.metadata()?.len() != index.intact as u64 {
        file.set_len(index.intact as u64)?;
    }
    let head = if index.intact == 0 { head(start) } else { Vec::new() };
    file.write_all(&[head, added].concat())
}

/// Replaces the index by one with fewer times. A reader, or a server after a crash, sees the old file or the new one.
fn rewrite(path: &Path, start: u64, index: &Index) -> io::Result<()> {
    let marks = times::thin(&index.marks, THINNED);
    let bytes = [head(start), index.others.clone(), encode(&marks, start)].concat();
    let temporary = path.with_extension(format!("index.{UNFINISHED}"));
    let _ = std::fs::remove_file(&temporary);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(&bytes).and_then(|()| std::fs::rename(&temporary, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

fn read(path: &Path, start: u64) -> Index {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let Ok(bytes) = opened.and_then(read_all) else { return Index::default() };
    parse(&bytes, start)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn head(start: u64) -> Vec<u8> {
    [MAGIC, start.to_le_bytes()].concat()
}

fn parse(bytes: &[u8], start: u64) -> Index {
    let mut index = Index::default();
    let Some((found, mut rest)) = bytes.split_at_checked(HEAD) else { return index };
    if found != head(start) {
        return index;
    }
    index.intact = HEAD;
    while let Some((record, after)) = split_record(rest) {
        let whole = &rest[..rest.len() - after.len()];
        match (record.kind, TimeMark::parse(record.payload, start)) {
            (KIND_TIME, Some(mark)) => times::push(&mut index.marks, mark),
            (KIND_TIME, None) => break,
            _ => index.others.extend_from_slice(whole),
        }
        index.intact += whole.len();
        rest = after;
    }
    index
}

struct Record<'a> {
    kind: u8,
    payload: &'a [u8],
}

/// The first record and what follows it; `None` if it is not intact.
fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (&kind, mut rest) = bytes.split_first()?;
    let length = usize::try_from(take_varint(&mut rest)?).ok()?;
    let (payload, rest) = rest.split_at_checked(length)?;
    let checked = &bytes[..bytes.len() - rest.len()];
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let intact = kind != 0 && u32::from_le_bytes(*sum) == checksum(checked);
    intact.then_some((Record { kind, payload }, rest))
}

fn encode(marks: &[TimeMark], start: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mark in marks {
        let mut payload = Vec::new();
        put_varint(&mut payload, mark.offset - start);
        put_varint(&mut payload, mark.wall_ms);
        put_record(&mut bytes, KIND_TIME, &payload);
    }
    bytes
}

fn put_record(bytes: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let from = bytes.len();
    bytes.push(kind);
    put_varint(bytes, payload.len() as u64);
    bytes.extend_from_slice(payload);
    let sum = checksum(&bytes[from..]);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

impl TimeMark {
    fn parse(mut payload: &[u8], start: u64) -> Option<Self> {
        let offset = start.checked_add(take_varint(&mut payload)?)?;
        Some(Self { offset, wall_ms: take_varint(&mut payload)? })
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}

/// Seven bits per byte, the lowest first; the highest bit says that more follow.
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 60 << 10;

    fn marks(count: u64) -> Vec<TimeMark> {
        (0..count)
            .map(|n| TimeMark { offset: START + n * 61, wall_ms: (1 << 40) + n * 977 })
            .collect()
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("00000000000000061440.log");
        (dir, log)
    }

    #[test]
    fn an_index_that_is_cut_anywhere_keeps_what_is_before_and_continues() {
        let (_dir, log) = folder();
        append(&log, START, &marks(40)).unwrap();
        let whole = std::fs::read(path(&log)).unwrap();
        for torn in [0, 0x55, 0xff] {
            for cut in 0..whole.len() {
                // What was not written may be missing, or anything.
                for tail in [0, 3, 600] {
                    let bytes = [&whole[..cut], &vec![torn; tail]].concat();
                    std::fs::write(path(&log), bytes).unwrap();
                    let found = read_marks(&log, START);
                    assert_eq!(found, marks(40)[..found.len()], "cut at {cut}");
                    let expected =
                        (0..=40).rev().find(|n| HEAD + encode(&marks(*n), START).len() <= cut);
                    assert!(found.len() as u64 >= expected.unwrap_or(0), "cut at {cut}");
                    append(&log, START, &marks(41)[found.len()..]).unwrap();
                    assert_eq!(read_marks(&log, START), marks(41), "cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn a_changed_byte_costs_only_what_follows() {
        let (_dir, log) = folder();
        append(&log, START, &marks(40)).unwrap();
        let whole = std::fs::read(path(&log)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x21;
            std::fs::write(path(&log), bytes).unwrap();
            let found = read_marks(&log, START);
            assert_eq!(found, marks(40)[..found.len()], "changed at {at}");
            assert!(HEAD + encode(&found, START).len() <= at.max(HEAD), "changed at {at}");
        }
    }

    #[test]
    fn records_of_another_kind_are_skipped_and_kept() {
        let (_dir, log) = folder();
        let mut bytes = [head(START), encode(&marks(1), START)].concat();
        put_record(&mut bytes, 7, &[9; 300]);
        std::fs::write(path(&log), bytes).unwrap();
        for count in [2, 60, 600, 1_200] {
            append(&log, START, &marks(count)).unwrap();
            let index = read(&path(&log), START);
            assert_eq!(index.marks.last(), marks(count).last());
            let (record, rest) = split_record(&index.others).unwrap();
            assert_eq!((record.kind, record.payload, rest), (7, &[9; 300][..], &[][..]));
        }
    }

    #[test]
    fn the_index_of_other_output_does_not_count() {
        let (_dir, log) = folder();
        append(&log, 0, &marks(3)).unwrap();
        assert_eq!(read_marks(&log, START), []);
        append(&log, START, &marks(2)).unwrap();
        assert_eq!(read_marks(&log, START), marks(2));
    }

    #[test]
    fn the_times_of_a_file_have_a_limit() {
        let (_dir, log) = folder();
        for batch in marks(20_000).chunks(128) {
            append(&log, START, batch).unwrap();
            let size = std::fs::metadata(path(&log)).unwrap().len();
            assert!(size <= (HEAD + TIME_BYTES) as u64, "{size}");
        }
        let found = read_marks(&log, START);
        assert_eq!((found.first(), found.last()), (marks(1).first(), marks(20_000).last()));
    }
}
