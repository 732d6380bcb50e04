//! Limits and defaults of a project file.

use std::time::Duration;

/// The maximum size of the file: a person must be able to read it before trusting it.
pub(super) const FILE_BYTES: u64 = 256 << 10;

/// The maximum number of errors reported for one file; the rest follow once these are fixed.
pub(super) const FAULTS: usize = 20;

/// The maximum number of processes: more than a person can follow in one project.
pub(super) const PROCESSES: usize = 100;

/// The maximum length of a name, so that it fits into lists.
pub(super) const NAME_CHARS: usize = 64;

/// The default number of consecutive restarts: after five failures a person should look at it.
pub(super) const RESTARTS: u32 = 5;

/// The maximum that a file may set.
pub(super) const MOST_RESTARTS: u32 = 1_000;

/// The default delay before the first restart; it doubles with each further restart.
pub(super) const DELAY: Duration = Duration::from_secs(1);

/// The default for the longest delay.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The longest time that a file may set: an hour; after that, a person can start the process.
pub(super) const MOST_SECONDS: f64 = 3_600.0;

/// How long a process may take to become ready before its dependents are cancelled.
pub(super) const READY: Duration = Duration::from_secs(60);

/// How long one try of a probe may take: a server that needs longer to answer is not well.
pub(super) const TRY_TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest interval and timeout of a probe, in seconds: each try starts a program or opens a connection.
pub(super) const LEAST_PROBE_SECONDS: f64 = 0.1;

/// The default interval of health checks: a person would not notice much sooner.
pub(super) const HEALTHY_EVERY: Duration = Duration::from_secs(10);

/// The default number of consecutive failures after which a process is unhealthy: one may be bad luck.
pub(super) const FAILURES: u32 = 3;

/// The maximum that a file may set.
pub(super) const MOST_FAILURES: u32 = 1_000;

/// The maximum number of file patterns that one process watches.
pub(super) const WATCH_PATTERNS: usize = 32;

/// The maximum number of hooks: each of them reads the log of events.
pub(super) const HOOKS: usize = 32;

/// How long a hook's command or request may take by default.
pub(super) const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of hashes that stay trusted: enough to switch between branches without being asked again,
/// and few enough that the list stays small over years.
pub(super) const TRUSTED: usize = 32;
