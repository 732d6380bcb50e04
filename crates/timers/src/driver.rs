//! The one task that lets timers fire: it sleeps until the next is due or something is seen of what
//! they watch.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::clock::Alarm;
use crate::limits::RETRY;
use crate::record::TimerId;
use crate::store::Timers;
use crate::world::Following;
use patterm_panes::process::ProcessId;

/// Lets the timers of a project fire.
pub struct Driver {
    timers: Arc<Timers>,
    alarm: Alarm,
    following: FuturesUnordered<Following>,
    followed: HashSet<ProcessId>,
}

impl Driver {
    /// One that will run; it needs the runtime.
    pub fn new(timers: Arc<Timers>) -> io::Result<Self> {
        let alarm = timers.clock.alarm()?;
        Ok(Self { timers, alarm, following: FuturesUnordered::new(), followed: HashSet::new() })
    }

    /// Fires what is to fire, for ever.
    pub async fn run(mut self) {
        let mut deliveries = self.timers.deliver.changes();
        loop {
            deliveries.mark_unchanged();
            self.follow();
            self.timers.look();
            let put_back = fire(&self.timers).await;
            self.timers.write_down();
            let due = self.wake_at(&put_back);
            let Self { timers, alarm, following, followed } = &mut self;
            tokio::select! {
                () = timers.wakeup.notified() => {}
                woken = alarm.until(due) => {
                    if let Err(error) = woken {
                        // Never seen; without a clock nothing could fire in time.
                        tracing::error!(%error, "the alarm of timers does not work");
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

    /// When to wake, whatever happens before.
    fn wake_at(&self, put_back: &HashSet<TimerId>) -> Option<u64> {
        let timers = &self.timers;
        let retry = u64::try_from(RETRY.as_millis()).unwrap_or(u64::MAX);
        let again = (!put_back.is_empty()).then(|| timers.clock.now().up_ms.saturating_add(retry));
        [timers.next_due(put_back), again].into_iter().flatten().min()
    }

    /// Begins to follow what timers listen to by now. What none listens to any more is let go of
    /// when something is seen of it.
    fn follow(&mut self) {
        for id in self.timers.listens_to() {
            // One that is closed is seen in the table, and would never be heard of.
            let there = self.timers.observe.process(&id).is_some();
            if there && self.followed.insert(id.clone()) {
                self.following.push(self.timers.observe.changed(id));
            }
        }
    }
}

/// Fires all that are to fire; returns those whose texts nobody takes now.
async fn fire(timers: &Timers) -> HashSet<TimerId> {
    let mut put_back = HashSet::new();
    while let Some(fired) = timers.fire_next(&put_back) {
        put_back.extend(fired.err());
        // Each is a write to the disk: whoever else has something to do gets a turn.
        tokio::task::yield_now().await;
    }
    put_back
}
