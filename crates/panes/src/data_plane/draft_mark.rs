//! A file that records a draft: text that was typed into a process and neither submitted nor discarded. It is not
//! synced: it must survive the server but not the machine, since the process does not either.

use std::io;
use std::path::{Path, PathBuf};

use crate::process::RunNumber;

/// Its name in the folder with the output of the process.
const FILE: &str = "draft";

/// The file of one process.
#[derive(Debug)]
pub struct DraftMark(PathBuf);

impl DraftMark {
    /// The mark in the folder with the output of a process.
    pub fn within(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// Whether an earlier server left a draft in this run of the process.
    pub(super) fn is_set(&self, run: RunNumber) -> bool {
        std::fs::read_to_string(&self.0).is_ok_and(|text| text == run.to_string())
    }

    /// Records whether there is a draft.
    pub(super) fn set(&self, run: RunNumber, draft: bool) {
        let written = match draft {
            true => std::fs::write(&self.0, run.to_string()),
            false => std::fs::remove_file(&self.0),
        };
        if let Err(error) = written.or_else(unless_gone) {
            tracing::warn!(file = %self.0.display(), %error, "cannot record whether there is a draft");
        }
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
