//! Why something could not be done with a pad.

use std::io;

use thiserror::Error;

use crate::index::Revision;
use crate::name::{NameError, PadName};
use patterm_store::state::StateError;

/// Why something could not be done with a pad.
#[derive(Debug, Error)]
pub enum PadError {
    /// No name for a pad.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is none of this name.
    #[error("there is no scratchpad `{name}`; {}", there_are(.others))]
    NotFound {
        /// The name asked for.
        name: PadName,
        /// Those there are.
        others: Vec<PadName>,
    },
    /// It should have been made new.
    #[error(
        "nothing was written: the scratchpad `{name}` exists, at revision {} by {}",
        .current.revision, .current.changed_by
    )]
    Exists {
        /// Its name.
        name: PadName,
        /// What it is now.
        current: Revision,
    },
    /// It is not at the revision that was named.
    #[error(
        "the scratchpad `{name}` is at revision {}, changed by {}, not at {expected}; nothing was \
         written. Read it again, bring your change into what it says now, and write that",
        .current.revision, .current.changed_by
    )]
    Changed {
        /// Its name.
        name: PadName,
        /// The revision that was named.
        expected: String,
        /// What it is now.
        current: Revision,
    },
    /// It was to be removed, and is not at the revision that was named.
    #[error(
        "the scratchpad `{name}` is at revision {}, changed by {}, not at {expected}; it was not removed. \
         Read it again before you decide",
        .current.revision, .current.changed_by
    )]
    Kept {
        /// Its name.
        name: PadName,
        /// The revision that was named.
        expected: String,
        /// What it is now.
        current: Revision,
    },
    /// It is gone, though a revision of it was named.
    #[error(
        "the scratchpad `{0}` does not exist, so it has no revision to expect; nothing was written. \
         To create it, write without a revision"
    )]
    Gone(PadName),
    /// Somebody saved it again and again while it was being written.
    #[error("the scratchpad `{0}` is being changed all the time; nothing was done. Try again")]
    Busy(PadName),
    /// More than a pad may hold.
    #[error(
        "a scratchpad holds up to {limit} bytes, and `{name}` would have {bytes}; nothing was written. \
         Write less, or split it into several"
    )]
    TooLarge {
        /// Its name.
        name: PadName,
        /// The size it would have.
        bytes: u64,
        /// The size it may have.
        limit: usize,
    },
    /// Somebody put more into it from outside than a pad may hold.
    #[error(
        "the file of the scratchpad `{name}` has {bytes} bytes, more than the {limit} that a \
         scratchpad holds; a person must make it smaller first"
    )]
    FileTooLarge {
        /// Its name.
        name: PadName,
        /// The size it has.
        bytes: u64,
        /// The size it may have.
        limit: usize,
    },
    /// As many as there may be.
    #[error(
        "there are {0} scratchpads, as many as a project may have; use one of them, or let a person \
         remove some (their files can simply be deleted)"
    )]
    Full(usize),
    /// What stands in the folder under its name is no plain file.
    #[error(
        "what has the name of the scratchpad `{0}` is no plain file; patterm follows no links. A person \
         must replace it by a file first"
    )]
    NoFile(PadName),
    /// A person's file that is no text.
    #[error(
        "the scratchpad `{name}` is no UTF-8 text (from byte {at} on); a person must save it as UTF-8 \
         first"
    )]
    NoText {
        /// Its name.
        name: PadName,
        /// Where it ceases to be.
        at: usize,
    },
    /// The file system said no.
    #[error("cannot {what} the scratchpad `{name}`: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which pad.
        name: PadName,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder or the index cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

impl PadError {
    /// The same for a caller that wanted to remove a pad, not to write it; `others` are those there are.
    pub(crate) fn of_removal(self, others: Vec<PadName>) -> Self {
        match self {
            Self::Gone(name) => Self::NotFound { name, others },
            Self::Changed { name, expected, current } => Self::Kept { name, expected, current },
            other => other,
        }
    }
}

/// Names that a message lists; more would only hide what it says.
const LISTED: usize = 20;

fn there_are(names: &[PadName]) -> String {
    if names.is_empty() {
        return "there are none yet".to_owned();
    }
    let listed: Vec<_> = names.iter().take(LISTED).map(PadName::as_str).collect();
    let more = if names.len() > LISTED { " and more" } else { "" };
    format!("there are {}{more}", listed.join(", "))
}
