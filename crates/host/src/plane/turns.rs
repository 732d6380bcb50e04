//! Whose turn it is: processes with something new, each in line once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::live::Live;
use patterm_store::sync::lock;

/// A line of processes for one thread to look after. `flag` is where a process notes that it stands
/// in this line.
#[derive(Debug)]
pub(super) struct Turns {
    line: Mutex<VecDeque<Arc<Live>>>,
    came: Condvar,
    flag: fn(&Live) -> &AtomicBool,
}

impl Turns {
    pub(super) fn new(flag: fn(&Live) -> &AtomicBool) -> Self {
        Self { line: Mutex::default(), came: Condvar::new(), flag }
    }

    /// Puts a process in line, once.
    pub(super) fn push(&self, live: &Arc<Live>) {
        if !(self.flag)(live).swap(true, Ordering::AcqRel) {
            lock(&self.line).push_back(live.clone());
            self.came.notify_one();
        }
    }

    /// Lets it go before all others, unless it is in line already.
    pub(super) fn push_first(&self, live: &Arc<Live>) {
        if !(self.flag)(live).swap(true, Ordering::AcqRel) {
            lock(&self.line).push_front(live.clone());
            self.came.notify_one();
        }
    }

    /// The next one, if any stands in line.
    #[cfg(test)]
    pub(super) fn try_next(&self) -> Option<Arc<Live>> {
        let live = lock(&self.line).pop_front()?;
        (self.flag)(&live).store(false, Ordering::Release);
        Some(live)
    }

    /// Waits for the next one. What comes from now on puts it in line again.
    pub(super) fn next(&self) -> Arc<Live> {
        let mut line = lock(&self.line);
        loop {
            if let Some(live) = line.pop_front() {
                (self.flag)(&live).store(false, Ordering::Release);
                return live;
            }
            line = self.came.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
