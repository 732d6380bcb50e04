//! Records which events were written last, in a small file of its own. Without it, the loss of the newest lines, or of all
//! files, would go unnoticed. It is written after each event and not synced: it survives the death of the server, and after a
//! power loss it only limits what may have been lost.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use patterm_store::private::PrivateDir;

use crate::line::{HASH_DIGITS, NO_HASH};
use crate::segment::Segment;

const FILE: &str = "newest";

/// The longest content: the numbers of an event and of each class, and a hash.
const MOST_BYTES: u64 = 256;

/// Digits of a number, so that the file always has the same length.
const NUMBER_DIGITS: usize = 20;

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newest {
    /// The number of the last event.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: String,
    /// By class: the number of its last event; 0 without any.
    pub(crate) class_last: Vec<u64>,
}

impl Newest {
    /// The end of an empty log.
    pub(crate) fn none(classes: usize) -> Self {
        Self { seq: 0, hash: NO_HASH.to_owned(), class_last: vec![0; classes] }
    }

    /// Reads what was written last; `None` if that is not known, as in a log of an earlier version.
    pub(crate) fn read(dir: &PrivateDir, classes: usize) -> Option<Self> {
        Self::parse(std::str::from_utf8(&dir.read(FILE, MOST_BYTES).ok()?).ok()?, classes)
    }

    /// Opens the file to write it.
    pub(crate) fn open(folder: &Path) -> io::Result<File> {
        Segment::open_in_place(&folder.join(FILE))
    }

    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(self.line().as_bytes(), 0)
    }

    fn line(&self) -> String {
        let numbers = std::iter::once(&self.seq).chain(&self.class_last);
        let numbers: Vec<_> = numbers.map(|seq| format!("{seq:0NUMBER_DIGITS$}")).collect();
        format!("{} {}\n", self.hash, numbers.join(" "))
    }

    fn parse(line: &str, classes: usize) -> Option<Self> {
        let mut fields = line.strip_suffix('\n')?.split(' ');
        let hash = fields.next().filter(|hash| hash.len() == HASH_DIGITS)?.to_owned();
        let number = |field: &str| field.parse().ok().filter(|_| field.len() == NUMBER_DIGITS);
        let mut numbers = fields.map(number).collect::<Option<Vec<u64>>>()?;
        (numbers.len() == classes + 1).then(|| Self {
            seq: numbers.remove(0),
            hash,
            class_last: numbers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_and_always_has_the_same_length() {
        let one = Newest { seq: 12, hash: "a".repeat(HASH_DIGITS), class_last: vec![0, 12, 7] };
        let line = one.line();
        assert_eq!(Newest::parse(&line, 3), Some(one));
        let other = Newest { seq: u64::MAX, ..Newest::none(3) };
        assert_eq!(other.line().len(), line.len());
        for torn in ["", "\n", &line[1..], &line[..line.len() - 1], &line.replace('1', "x")] {
            assert_eq!(Newest::parse(torn, 3), None, "{torn:?}");
        }
        assert_eq!(Newest::parse(&line, 2), None);
    }
}
