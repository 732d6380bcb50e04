//! Counts operations and collects errors.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shared by all workers.
#[derive(Default)]
pub(super) struct Journal {
    inner: Mutex<Inner>,
    ended: Condvar,
}

#[derive(Default)]
struct Inner {
    counts: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
    over: bool,
}

impl Journal {
    /// Counts an operation.
    pub(super) fn did(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub(super) fn add(&self, what: &'static str, count: u64) {
        *self.lock().counts.entry(what).or_default() += count;
    }

    /// Records an error, and prints it at once: an hour is long.
    #[expect(clippy::print_stderr, reason = "somebody may be watching")]
    pub(super) fn wrong(&self, what: String) {
        eprintln!("ERROR {what}");
        self.lock().errors.push(what);
    }

    /// Waits; returns whether to continue.
    pub(super) fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut inner = self.lock();
        while !inner.over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.ended.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Tells all workers to stop.
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.ended.notify_all();
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.lock().counts.clone()
    }

    pub(super) fn errors(&self) -> Vec<String> {
        self.lock().errors.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
