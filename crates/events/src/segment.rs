//! Files of one class of events. A file's name says which class it belongs to, and the number of its first event.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use patterm_wire::events::EventClass;
use rustix::fs::OFlags;

use crate::line::{self, StoredEvent};

/// A file, as far as it was written when this was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The number of its first event.
    pub(crate) first: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

/// What a scan of a file's lines found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The last event that is whole.
    pub(crate) last: Option<StoredEvent>,
    /// Where the last whole event ends.
    pub(crate) whole_end: u64,
    /// Where the last line ends, whole or not.
    pub(crate) line_end: u64,
    /// How many complete lines after the last whole event are damaged.
    pub(crate) damaged_at_end: u64,
}

impl Segment {
    /// The path of a file.
    pub(crate) fn path_of(folder: &Path, class: EventClass, first: u64) -> PathBuf {
        folder.join(format!("{}-{first:020}.log", class.name()))
    }

    /// The class and the first number in a file's name.
    pub(crate) fn parse_name(name: &str) -> Option<(EventClass, u64)> {
        let (class, first) = name.strip_suffix(".log")?.split_once('-')?;
        let class = EventClass::ALL.into_iter().find(|known| known.name() == class)?;
        Some((class, first.parse().ok().filter(|_| first.len() == 20)?))
    }

    /// Creates a file, which must not exist, or continues one.
    pub(crate) fn open(path: &Path, is_new: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).read(true).create_new(is_new).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
    }

    /// Opens a small file that is rewritten in place; creates it if necessary.
    pub(crate) fn open_in_place(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
    }

    /// Its content, without what was appended later.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        options.open(&self.path)?.take(self.bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads all lines of a file.
pub(crate) fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        let after = u64::try_from(end + 1).unwrap_or(u64::MAX);
        match line::decode(&bytes[start..end]) {
            Some(event) => {
                scan.last = Some(event);
                (scan.whole_end, scan.damaged_at_end) = (after, 0);
            }
            None => scan.damaged_at_end += 1,
        }
        scan.line_end = after;
        start = end + 1;
    }
    scan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_class_and_a_number() {
        let path = Segment::path_of(Path::new("/x"), EventClass::Calls, 42);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "calls-00000000000000000042.log");
        assert_eq!(Segment::parse_name(name), Some((EventClass::Calls, 42)));
        for other in ["checkpoint.json", "calls-42.log", "moons-00000000000000000042.log", "lock"] {
            assert_eq!(Segment::parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_scan_finds_the_end_of_what_is_whole() {
        let line = |seq: u64| {
            let json = format!("{{\"seq\":{seq},\"x\":1}}");
            line::encode(&line::hash_of(&json), seq - 1, &json)
        };
        let whole = [line(1), line(2)].concat();
        let torn = [&whole[..], &line(3)[..20]].concat();
        let found = scan(&torn);
        assert_eq!((found.last.unwrap().seq, found.whole_end), (2, whole.len() as u64));
        assert_eq!((found.line_end, found.damaged_at_end), (whole.len() as u64, 0));
        let damaged = [&whole[..], b"rubbish\n"].concat();
        let found = scan(&damaged);
        assert_eq!((found.line_end, found.damaged_at_end), (damaged.len() as u64, 1));
        assert_eq!(scan(b""), Scan::default());
    }
}
