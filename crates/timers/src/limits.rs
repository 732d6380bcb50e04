//! Every ceiling of timers, with its reason.

use std::time::Duration;

/// The longest time a timer may take: a year is longer than any project waits for a nudge, and far
/// from where clocks overflow.
pub const MOST_SECONDS: f64 = 365.0 * 86_400.0;

/// Bytes of one body: a long prompt. More belongs into a file that the body names.
pub const BODY_BYTES: usize = 64 << 10;

/// Bytes of all bodies together: the file that holds them is written whole at every change.
pub(crate) const ALL_BODY_BYTES: usize = 4 << 20;

/// Timers of one owner: as many as texts may wait for a process at once.
pub(crate) const OF_ONE_OWNER: usize = 100;

/// Timers of a project: ten for each of a hundred agents.
pub(crate) const OF_THE_PROJECT: usize = 1_000;

/// Processes that one timer watches: a whole team.
pub const WATCHED: usize = 100;

/// Timers that are over and still told of, to whoever asks for one by its id.
pub(crate) const REMEMBERED: usize = 200;

/// Processes that a line about a firing names; the rest is a number.
pub(crate) const NAMED: usize = 20;

/// When a text that could not be queued (a full disk, a full line) is tried again, should nothing
/// change before.
pub(crate) const RETRY: Duration = Duration::from_secs(5);
