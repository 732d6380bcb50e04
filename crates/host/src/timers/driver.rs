//! The one task that lets timers fire: it sleeps until the next is due or something is seen of what
//! they watch.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::clock::Alarm;
use super::limits::RETRY;
use super::record::TimerId;
use super::sight::Sight;
use crate::activity::{Activities, Standing};
use crate::host::Host;
use crate::process::{ProcessId, Status};

/// Ends when something new is seen of a process, with its id.
type Following = Pin<Box<dyn Future<Output = ProcessId> + Send>>;

/// Lets the timers of a host fire.
pub(crate) struct Driver {
    host: Arc<Host>,
    alarm: Alarm,
    following: FuturesUnordered<Following>,
    followed: HashSet<ProcessId>,
}

impl Driver {
    /// One that will run; it needs the runtime.
    pub(crate) fn new(host: Arc<Host>) -> io::Result<Self> {
        let alarm = host.timers.clock.alarm()?;
        Ok(Self { host, alarm, following: FuturesUnordered::new(), followed: HashSet::new() })
    }

    /// Fires what is to fire, for ever.
    pub(crate) async fn run(mut self) {
        let mut deliveries = self.host.deliveries.changes();
        loop {
            deliveries.mark_unchanged();
            self.follow();
            self.host.timers.look(&self.host);
            let put_back = fire(&self.host).await;
            self.host.timers.write_down();
            let due = self.wake_at(&put_back);
            let Self { host, alarm, following, followed } = &mut self;
            tokio::select! {
                () = host.timers.bell.notified() => {}
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
        let timers = &self.host.timers;
        let retry = u64::try_from(RETRY.as_millis()).unwrap_or(u64::MAX);
        let again = (!put_back.is_empty()).then(|| timers.clock.now().up_ms.saturating_add(retry));
        [timers.next_due(put_back), again].into_iter().flatten().min()
    }

    /// Begins to follow what timers listen to by now. What none listens to any more is let go of
    /// when something is seen of it.
    fn follow(&mut self) {
        for id in self.host.timers.listens_to() {
            // One that is closed is seen in the table, and would never be heard of.
            let there = self.host.processes.get(&id).is_some();
            if there && self.followed.insert(id.clone()) {
                self.following.push(changed(&self.host.activities, id));
            }
        }
    }
}

/// Fires all that are to fire; returns those whose texts nobody takes now.
async fn fire(host: &Host) -> HashSet<TimerId> {
    let mut put_back = HashSet::new();
    while let Some(fired) = host.timers.fire_next(host, &put_back) {
        put_back.extend(fired.err());
        // Each is a write to the disk: whoever else has something to do gets a turn.
        tokio::task::yield_now().await;
    }
    put_back
}

/// Waits until a process looks different from now.
fn changed(activities: &Activities, id: ProcessId) -> Following {
    let mut follower = activities.follow(&id);
    let alive = Some(Status::Running);
    let before = Sight::new(alive, &follower.standing.borrow_and_update());
    Box::pin(async move {
        // Its reason may change with every letter on its screen; that is nobody's alarm. An end of
        // the channel is a close, which is seen in the table.
        let changed = |standing: &Standing| Sight::new(alive, standing) != before;
        let _ = follower.standing.wait_for(changed).await;
        id
    })
}
