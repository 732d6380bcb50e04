//! The limits of timers, each with its reason.

use std::time::Duration;

/// The longest delay of a timer: a year is longer than any project waits for a reminder, and
/// far from where clocks overflow.
pub const MOST_SECONDS: f64 = 365.0 * 86_400.0;

/// Bytes of one body: a long prompt. Longer texts belong in a file that the body names.
pub const BODY_BYTES: usize = 64 << 10;

/// Bytes of all bodies together: the file that holds them is rewritten at every change.
pub(crate) const ALL_BODY_BYTES: usize = 4 << 20;

/// Timers of one owner: as many as the texts that may be queued for a process.
pub(crate) const OF_ONE_OWNER: usize = 100;

/// Timers of a project: ten for each of a hundred agents.
pub(crate) const OF_THE_PROJECT: usize = 1_000;

/// Processes that one timer watches: a whole team.
pub const WATCHED: usize = 100;

/// Ended timers that are remembered, to explain what happened to them.
pub(crate) const REMEMBERED: usize = 200;

/// Processes that the line of a firing names; the rest is a number.
pub(crate) const NAMED: usize = 20;

/// When a text that could not be queued (full disk, full queue) is tried again, if nothing
/// changes earlier.
pub(crate) const RETRY: Duration = Duration::from_secs(5);
