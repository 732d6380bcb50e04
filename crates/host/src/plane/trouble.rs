//! What keeps a process's output from being kept as it should be.

use std::fmt;
use std::io;

use patterm_store::reserve::is_disk_full;

/// Why a log has no room for what is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The disk is full, or the user's share of it.
    DiskFull,
    /// Its files cannot be made or opened.
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
                "the disk is full: its oldest output is dropped for the newest; make room",
            ),
            Self::NoAccess(why) => {
                write!(
                    f,
                    "no file can be made for its newest output, which replaces the oldest: {why}"
                )
            }
        }
    }
}
