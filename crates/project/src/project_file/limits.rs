//! What a project file may ask for at the most, and what it gets where it says nothing.

use std::time::Duration;

/// Bytes of the file: what is longer was not written by hand, and a person could not read it before
/// trusting it.
pub(super) const FILE_BYTES: u64 = 256 << 10;

/// Mistakes that are told of one file: who has mended these sees the next ones.
pub(super) const FAULTS: usize = 20;

/// Processes of one file: more than anybody looks after in one project.
pub(super) const PROCESSES: usize = 100;

/// Characters of a name: it must fit into a list.
pub(super) const NAME_CHARS: usize = 64;

/// Restarts in a row, where the file sets no limit: what failed five times needs a person.
pub(super) const RESTARTS: u32 = 5;

/// And where it does.
pub(super) const MOST_RESTARTS: u32 = 1_000;

/// The time before the first restart; each further one waits twice as long.
pub(super) const DELAY: Duration = Duration::from_secs(1);

/// The longest of these times, where the file says nothing else.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The longest time that a file may set: after an hour a person starts it.
pub(super) const MOST_SECONDS: f64 = 3_600.0;

/// How long a process may take to become ready before those that need it are given up.
pub(super) const READY: Duration = Duration::from_secs(60);

/// Patterns of files for one process.
pub(super) const WATCH_PATTERNS: usize = 32;

/// Hashes of contents that stay trusted: going back to another branch needs no second look, and a
/// year of edits does not pile up.
pub(super) const TRUSTED: usize = 32;
