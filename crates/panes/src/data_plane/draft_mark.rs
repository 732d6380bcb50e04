//! A file that says that something was typed into a process and neither entered nor given up. It is not
//! synced: it must outlive the server, and need not outlive the machine, since the process does not.

use std::io;
use std::path::{Path, PathBuf};

/// Its name in the folder of the process's output.
const FILE: &str = "draft";

/// The file of one process.
#[derive(Debug)]
pub struct DraftMark(PathBuf);

impl DraftMark {
    /// The mark in the folder of a process's output.
    pub fn within(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// Whether an earlier server left a draft in this run of the process.
    pub(super) fn is_set(&self, run: u64) -> bool {
        std::fs::read_to_string(&self.0).is_ok_and(|text| text == run.to_string())
    }

    /// Notes whether there is a draft.
    pub(super) fn set(&self, run: u64, draft: bool) {
        let written = match draft {
            true => std::fs::write(&self.0, run.to_string()),
            false => std::fs::remove_file(&self.0),
        };
        if let Err(error) = written.or_else(unless_gone) {
            tracing::warn!(file = %self.0.display(), %error, "cannot note whether there is a draft");
        }
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
