//! Errors of operations on pads.

use std::io;

use thiserror::Error;

use crate::index::Revision;
use crate::name::{NameError, PadName};
use patterm_store::state::StateError;

/// Why an operation on a pad failed.
#[derive(Debug, Error)]
pub enum PadError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no pad with this name.
    #[error("there is no scratchpad `{name}`; {}", there_are(.others))]
    NotFound {
        /// The requested name.
        name: PadName,
        /// The existing pads.
        others: Vec<PadName>,
    },
    /// A new pad was to be created, but it exists.
    #[error(
        "nothing was written: the scratchpad `{name}` exists, at revision {} by {}",
        .current.revision, .current.changed_by
    )]
    Exists {
        /// Its name.
        name: PadName,
        /// Its current revision.
        current: Revision,
    },
    /// It is not at the expected revision.
    #[error(
        "the scratchpad `{name}` is at revision {}, changed by {}, not at {expected}; nothing was \
         written. Read it again, merge your change into its current content, and write the result",
        .current.revision, .current.changed_by
    )]
    Changed {
        /// Its name.
        name: PadName,
        /// The expected revision.
        expected: String,
        /// Its current revision.
        current: Revision,
    },
    /// It was to be removed, but is not at the expected revision.
    #[error(
        "the scratchpad `{name}` is at revision {}, changed by {}, not at {expected}; it was not removed. \
         Read it again before you decide",
        .current.revision, .current.changed_by
    )]
    Kept {
        /// Its name.
        name: PadName,
        /// The expected revision.
        expected: String,
        /// Its current revision.
        current: Revision,
    },
    /// It does not exist, although a revision was expected.
    #[error(
        "the scratchpad `{0}` does not exist, so it has no revision to expect; nothing was written. \
         To create it, write without a revision"
    )]
    Gone(PadName),
    /// It was saved again and again while it was being written.
    #[error("the scratchpad `{0}` keeps changing; nothing was done. Try again")]
    Busy(PadName),
    /// The content is too large for a pad.
    #[error(
        "a scratchpad holds up to {limit} bytes, but `{name}` would have {bytes}; nothing was written. \
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
    /// An editor made the file larger than a pad may be.
    #[error(
        "the file of the scratchpad `{name}` has {bytes} bytes, more than the {limit} that a \
         scratchpad holds; a person must shorten it first"
    )]
    FileTooLarge {
        /// Its name.
        name: PadName,
        /// The size it has.
        bytes: u64,
        /// The size it may have.
        limit: usize,
    },
    /// The project has as many pads as it may have.
    #[error(
        "there are {0} scratchpads, as many as a project may have; use one of them, or ask a person to \
         remove some (their files can simply be deleted)"
    )]
    Full(usize),
    /// There is something with its name in the folder, but not a regular file.
    #[error(
        "the scratchpad `{0}` is not a regular file, and patterm does not follow links. A person must \
         replace it with a file first"
    )]
    NoFile(PadName),
    /// The file is not UTF-8 text.
    #[error(
        "the scratchpad `{name}` is not UTF-8 text (at byte {at}); a person must save it as UTF-8 \
         first"
    )]
    NoText {
        /// Its name.
        name: PadName,
        /// The position of the first invalid byte.
        at: usize,
    },
    /// A file operation failed.
    #[error("cannot {what} the scratchpad `{name}`: {source}")]
    Io {
        /// The attempted action.
        what: &'static str,
        /// The pad.
        name: PadName,
        /// The cause.
        source: io::Error,
    },
    /// The folder or the index cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

impl PadError {
    /// The error for a caller that wanted to remove a pad, not to write it.
    pub(crate) fn of_removal(self, others: Vec<PadName>) -> Self {
        match self {
            Self::Gone(name) => Self::NotFound { name, others },
            Self::Changed { name, expected, current } => Self::Kept { name, expected, current },
            other => other,
        }
    }
}

/// How many names an error lists; more would bury the message.
const LISTED: usize = 20;

fn there_are(names: &[PadName]) -> String {
    if names.is_empty() {
        return "there are none yet".to_owned();
    }
    let listed: Vec<_> = names.iter().take(LISTED).map(PadName::as_str).collect();
    let more = if names.len() > LISTED { " and more" } else { "" };
    format!("the scratchpads are {}{more}", listed.join(", "))
}
