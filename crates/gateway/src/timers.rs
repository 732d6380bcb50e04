//! Timeouts that almost never fire. Creating a timer takes a lock and an entry in the clock's
//! wheel, and so does dropping it; resetting one costs next to nothing. So finished calls leave
//! their timer to the next call.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Timers kept for reuse: as many as there are usually calls in flight.
const KEPT: usize = 256;

/// Timers for one purpose. They belong to the runtime that they were first used on.
#[derive(Debug, Default)]
pub(crate) struct Timers(Mutex<Vec<Pin<Box<Sleep>>>>);

impl Timers {
    /// The output of `future`, or `None` if it takes longer than `limit`.
    pub(crate) async fn timeout<F: Future>(
        &self,
        patience: Duration,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut timer = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let timer = timer.get_or_insert_with(|| self.set(Instant::now() + patience));
            timer.poll(context).map(|()| None)
        })
        .await
    }

    fn set(&self, deadline: Instant) -> Timer<'_> {
        let kept = self.kept().pop();
        let sleep = match kept {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline);
                sleep
            }
            None => Box::pin(sleep_until(deadline)),
        };
        Timer { timers: self, sleep: Some(sleep) }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running timer, returned for reuse when dropped.
struct Timer<'a> {
    timers: &'a Timers,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Ready(()), |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        let mut kept = self.timers.kept();
        if kept.len() < KEPT {
            kept.extend(self.sleep.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reused_timer_fires_on_time() {
        let timers = Timers::default();
        let patience = Duration::from_secs(10);
        for _ in 0..3 {
            let soon = tokio::time::sleep(Duration::from_secs(7));
            assert_eq!(timers.timeout(patience, soon).await, Some(()));
            let began = Instant::now();
            assert_eq!(timers.timeout(patience, std::future::pending::<()>()).await, None);
            assert_eq!(began.elapsed(), patience);
        }
        assert_eq!(timers.kept().len(), 1);
    }
}
