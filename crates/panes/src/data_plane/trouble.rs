//! Reasons why the output of a process cannot be stored normally.

use std::fmt;
use std::io;

use patterm_store::reserve::is_disk_full;

/// Why a log cannot get a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The disk or the user's quota is full.
    DiskFull,
    /// A file cannot be created or opened.
    NoAccess(String),
}

impl Trouble {
    pub(super) fn of(error: &io::Error) -> Self {
        match is_disk_full(error) {
            true => Self::DiskFull,
            false => Self::NoAccess(error.to_string()),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull => f.write_str(
                "the disk is full: its newest output replaces the oldest; free some space",
            ),
            Self::NoAccess(why) => write!(
                f,
                "no file can be created for its newest output, which replaces the oldest: {why}"
            ),
        }
    }
}
