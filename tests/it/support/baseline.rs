//! What a process uses at rest: the baseline for tests that look for leaks or for what something
//! costs. A server opens files, starts threads and fills buffers on first use and then keeps them, so a
//! baseline is taken only after the same kind of work has been done and its traces have settled.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::process_stats::ProcessStats;

/// A process whose readings stay the same for this long has finished what it was given.
const QUIET: Duration = Duration::from_millis(200);

/// Between two readings.
const PAUSE: Duration = Duration::from_millis(5);

/// A process that is never quiet for so long leaks, or the test gives it work all the time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What two rounds of the same work may differ by in memory: pages that the allocator happens to touch.
const SAME_MEMORY: u64 = 256 << 10;

/// A process that uses more with every round leaks; the test that follows says how much.
const MOST_ROUNDS: usize = 6;

/// What a process uses at rest.
#[derive(Debug)]
pub(crate) struct Baseline {
    process_stats: ProcessStats,
    settled: Settled,
}

/// Readings that did not change for [`QUIET`].
#[derive(Debug)]
struct Settled {
    descriptors: Vec<String>,
    threads: usize,
    children: Vec<u32>,
    /// The most in that time: output that comes meanwhile moves them up and down.
    resident: u64,
    anonymous: u64,
}

impl Settled {
    fn has_same_counts(&self, other: &Self) -> bool {
        self.descriptors.len() == other.descriptors.len()
            && self.threads == other.threads
            && self.children.len() == other.children.len()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.has_same_counts(other)
            && self.resident.abs_diff(other.resident) <= SAME_MEMORY
            && self.anonymous.abs_diff(other.anonymous) <= SAME_MEMORY
    }
}

impl Baseline {
    /// Of a process that did this work, which is of the kind the test does later, until another round
    /// of it changed nothing.
    #[track_caller]
    pub(crate) fn after(process_stats: &ProcessStats, work: impl FnMut()) -> Self {
        Self::of_each_after(std::slice::from_ref(process_stats), work).remove(0)
    }

    /// The same for several processes that do this work together.
    #[track_caller]
    pub(crate) fn of_each_after(processes: &[ProcessStats], mut work: impl FnMut()) -> Vec<Self> {
        work();
        let mut settled: Vec<_> = processes.iter().map(settle).collect();
        for _ in 1..MOST_ROUNDS {
            work();
            let now: Vec<_> = processes.iter().map(settle).collect();
            let is_done = now.iter().zip(&settled).all(|(now, before)| now.is_like(before));
            settled = now;
            if is_done {
                break;
            }
        }
        let of = |(process_stats, settled): (&ProcessStats, Settled)| Self {
            process_stats: process_stats.clone(),
            settled,
        };
        processes.iter().zip(settled).map(of).collect()
    }

    /// The descriptors that are open now, if they are more than at rest.
    pub(crate) fn more_descriptors(&self) -> Option<String> {
        let (now, then) = (self.process_stats.open_files(), &self.settled.descriptors);
        (now.len() > then.len()).then(|| format!("descriptors {now:#?}, at rest {then:#?}"))
    }

    /// Descriptors, threads or children (zombies among them), if there are more than at rest.
    pub(crate) fn more_of_anything(&self) -> Option<String> {
        let (threads, children) = (self.process_stats.threads(), self.process_stats.children());
        let more_threads = (threads > self.settled.threads)
            .then(|| format!("{threads} threads, at rest {}", self.settled.threads));
        let more_children = (children.len() > self.settled.children.len())
            .then(|| format!("children {children:?}, at rest {:?}", self.settled.children));
        self.more_descriptors().or(more_threads).or(more_children)
    }

    /// Bytes of memory in use beyond those at rest.
    pub(crate) fn more_resident(&self) -> u64 {
        self.process_stats.resident().saturating_sub(self.settled.resident)
    }

    /// The same for memory that is not of mapped files.
    pub(crate) fn more_anonymous(&self) -> u64 {
        self.process_stats.anonymous().saturating_sub(self.settled.anonymous)
    }

    /// The most that was ever in use beyond what was at rest, since [`ProcessStats::forget_peak`].
    pub(crate) fn higher_peak(&self) -> u64 {
        self.process_stats.peak().saturating_sub(self.settled.resident)
    }
}

#[track_caller]
fn settle(process_stats: &ProcessStats) -> Settled {
    let look = || Settled {
        descriptors: process_stats.open_files(),
        threads: process_stats.threads(),
        children: process_stats.children(),
        resident: process_stats.resident(),
        anonymous: process_stats.anonymous(),
    };
    // A pause between two looks: that nothing changes for a while is seen only by looking for a while.
    let (_never, nothing) = sync_channel::<()>(0);
    let begun = Instant::now();
    let (mut since, mut settled) = (begun, look());
    while since.elapsed() < QUIET {
        assert!(begun.elapsed() < PATIENCE, "never at rest: {process_stats:?} {settled:#?}");
        let _ = nothing.recv_timeout(PAUSE);
        let now = look();
        if now.has_same_counts(&settled) {
            settled.resident = settled.resident.max(now.resident);
            settled.anonymous = settled.anonymous.max(now.anonymous);
        } else {
            (since, settled) = (Instant::now(), now);
        }
    }
    settled
}
