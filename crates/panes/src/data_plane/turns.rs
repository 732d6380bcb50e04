//! Queues of runs that wait for a thread's attention. Each run is in a queue at most once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::run::ProcessRun;
use patterm_store::sync::lock;

/// Whether a run is in a queue. Any thread may enter it; only the queue's own thread removes it, before it does the
/// work. So work that arrives while the thread is busy queues the run again.
#[derive(Debug, Default)]
pub(super) struct Queued(AtomicBool);

impl Queued {
    /// `true` if the run was not queued before.
    fn enter(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    fn leave(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The queue of one thread. `queued` selects the flag by which a run knows that it is in this queue.
#[derive(Debug)]
pub(super) struct Turns {
    queue: Mutex<VecDeque<Arc<ProcessRun>>>,
    pushed: Condvar,
    queued: fn(&ProcessRun) -> &Queued,
}

impl Turns {
    pub(super) fn new(queued: fn(&ProcessRun) -> &Queued) -> Self {
        Self { queue: Mutex::default(), pushed: Condvar::new(), queued }
    }

    /// Appends a run, unless it is queued already.
    pub(super) fn push(&self, run: &Arc<ProcessRun>) {
        if (self.queued)(run).enter() {
            lock(&self.queue).push_back(run.clone());
            self.pushed.notify_one();
        }
    }

    /// Puts a run before all others, unless it is queued already.
    pub(super) fn push_first(&self, run: &Arc<ProcessRun>) {
        if (self.queued)(run).enter() {
            lock(&self.queue).push_front(run.clone());
            self.pushed.notify_one();
        }
    }

    /// Takes the next run, if there is one.
    #[cfg(test)]
    pub(super) fn try_next(&self) -> Option<Arc<ProcessRun>> {
        let run = lock(&self.queue).pop_front()?;
        (self.queued)(&run).leave();
        Some(run)
    }

    /// Waits for the next run and takes it.
    pub(super) fn next(&self) -> Arc<ProcessRun> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(run) = queue.pop_front() {
                (self.queued)(&run).leave();
                return run;
            }
            queue = self.pushed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
