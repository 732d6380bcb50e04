//! What a process uses when idle: the baseline for tests that look for leaks or measure costs. A
//! server opens files, starts threads and fills buffers on first use and then keeps them, so a
//! baseline is taken only after the same kind of work was done and its usage is stable.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::process_stats::ProcessStats;

/// A process whose readings stay the same for this long has finished its work.
const QUIET: Duration = Duration::from_millis(200);

/// The interval between two readings.
const PAUSE: Duration = Duration::from_millis(5);

/// A process that does not become quiet within this time leaks, or the test keeps it busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// By how much memory may differ after two rounds of the same work: pages that the allocator
/// happens to touch.
const SAME_MEMORY: u64 = 256 << 10;

/// The maximum number of rounds. A process that uses more with every round leaks; the test that
/// follows reports how much.
const MOST_ROUNDS: usize = 6;

/// What a process uses when idle.
#[derive(Debug)]
pub(crate) struct Baseline {
    process_stats: ProcessStats,
    settled: Settled,
}

/// Readings that did not change for [`QUIET`].
#[derive(Debug)]
struct Settled {
    descriptors: Vec<String>,
    threads: Vec<String>,
    children: Vec<u32>,
    /// The peak in that time: output that arrives meanwhile moves them up and down.
    resident: u64,
    anonymous: u64,
}

impl Settled {
    fn has_same_counts(&self, other: &Self) -> bool {
        self.descriptors.len() == other.descriptors.len()
            && self.threads.len() == other.threads.len()
            && self.children.len() == other.children.len()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.has_same_counts(other)
            && self.resident.abs_diff(other.resident) <= SAME_MEMORY
            && self.anonymous.abs_diff(other.anonymous) <= SAME_MEMORY
    }
}

impl Baseline {
    /// The baseline of a process after this work, which is of the kind that the test does later;
    /// repeated until another round changes nothing.
    #[track_caller]
    pub(crate) fn after(process_stats: &ProcessStats, work: impl FnMut()) -> Self {
        Self::of_each_after(std::slice::from_ref(process_stats), work).remove(0)
    }

    /// The same for several processes that work together.
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

    /// The descriptors that are open now, if there are more than in the baseline.
    pub(crate) fn more_descriptors(&self) -> Option<String> {
        let (now, then) = (self.process_stats.open_files(), &self.settled.descriptors);
        (now.len() > then.len()).then(|| format!("descriptors {now:#?}, at rest {then:#?}"))
    }

    /// Descriptors, threads or children (including zombies), if there are more than in the
    /// baseline.
    fn more_of_anything(&self) -> Option<String> {
        let (threads, children) = (self.process_stats.threads(), self.process_stats.children());
        let more_threads = (threads.len() > self.settled.threads.len())
            .then(|| format!("threads {threads:?}, at rest {:?}", self.settled.threads));
        let more_children = (children.len() > self.settled.children.len())
            .then(|| format!("children {children:?}, at rest {:?}", self.settled.children));
        self.more_descriptors().or(more_threads).or(more_children)
    }

    /// Waits until there are no more descriptors, threads and children than in the baseline.
    #[track_caller]
    pub(crate) fn wait_until_reached(&self) {
        let begun = Instant::now();
        while let Some(more) = self.more_of_anything() {
            assert!(begun.elapsed() < PATIENCE, "not at rest: {:?}: {more}", self.process_stats);
            std::thread::yield_now();
        }
    }

    /// Bytes of memory in use above the baseline.
    pub(crate) fn more_resident(&self) -> u64 {
        self.process_stats.resident().saturating_sub(self.settled.resident)
    }

    /// The same for anonymous memory.
    pub(crate) fn more_anonymous(&self) -> u64 {
        self.process_stats.anonymous().saturating_sub(self.settled.anonymous)
    }

    /// The peak above the baseline, since [`ProcessStats::forget_peak`].
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
    // A pause between two readings: stability shows only over time.
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
