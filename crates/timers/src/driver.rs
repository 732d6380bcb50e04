//! The task that fires timers: it sleeps until the next one is due or the state of a watched
//! process changes.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::interfaces::StateChange;
use crate::limits::RETRY;
use crate::record::TimerId;
use crate::store::Timers;
use patterm_panes::process::ProcessId;
use patterm_store::clock::Alarm;

/// Fires the timers of a project.
pub struct Driver {
    timers: Arc<Timers>,
    alarm: Alarm,
    following: FuturesUnordered<StateChange>,
    followed: HashSet<ProcessId>,
}

impl Driver {
    /// Creates a driver; it needs a tokio runtime.
    pub fn new(timers: Arc<Timers>) -> io::Result<Self> {
        let alarm = timers.clock.alarm()?;
        Ok(Self { timers, alarm, following: FuturesUnordered::new(), followed: HashSet::new() })
    }

    /// Fires timers until the server ends.
    pub async fn run(mut self) {
        let mut deliveries = self.timers.deliver.changes();
        loop {
            deliveries.mark_unchanged();
            self.follow();
            self.timers.observe_all();
            let put_back = fire(&self.timers).await;
            self.timers.save_events();
            let due = self.wake_at(&put_back);
            let Self { timers, alarm, following, followed } = &mut self;
            tokio::select! {
                () = timers.wakeup.notified() => {}
                woken = alarm.until(due) => {
                    if let Err(error) = woken {
                        // This has never been seen; without a clock, no timer could fire on time.
                        tracing::error!(%error, "the alarm for timers failed");
                        return;
                    }
                }
                Some(id) = following.next() => {
                    followed.remove(&id);
                }
                _ = deliveries.changed(), if !put_back.is_empty() => {}
            }
        }
    }

    /// When to wake up at the latest.
    fn wake_at(&self, put_back: &HashSet<TimerId>) -> Option<u64> {
        let timers = &self.timers;
        let retry = u64::try_from(RETRY.as_millis()).unwrap_or(u64::MAX);
        let again = (!put_back.is_empty()).then(|| timers.clock.now().up_ms.saturating_add(retry));
        [timers.next_due(put_back), again].into_iter().flatten().min()
    }

    /// Starts to follow the processes that timers watch. Processes that are no longer
    /// watched are dropped at their next change.
    fn follow(&mut self) {
        for id in self.timers.watched_processes() {
            // A closed process never changes again; its state is visible in the table.
            let exists = self.timers.observe.process(&id).is_some();
            if exists && self.followed.insert(id.clone()) {
                self.following.push(self.timers.observe.changed(id));
            }
        }
    }
}

/// Fires all timers that are ready; returns those whose texts cannot be queued now.
async fn fire(timers: &Timers) -> HashSet<TimerId> {
    let mut put_back = HashSet::new();
    while let Some(fired) = timers.fire_next(&put_back) {
        put_back.extend(fired.err());
        // Each firing writes to the disk, so let other tasks run.
        tokio::task::yield_now().await;
    }
    put_back
}
