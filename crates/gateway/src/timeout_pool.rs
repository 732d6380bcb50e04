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
const POOL_SIZE: usize = 256;

/// Timers for one purpose. They belong to the runtime that they were first used on.
#[derive(Debug, Default)]
pub(crate) struct TimeoutPool(Mutex<Vec<Pin<Box<Sleep>>>>);

impl TimeoutPool {
    /// The output of `future`, or `None` if it takes longer than `limit`.
    pub(crate) async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut timer = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let timer = timer.get_or_insert_with(|| self.set(Instant::now() + limit));
            timer.poll(context).map(|()| None)
        })
        .await
    }

    fn set(&self, deadline: Instant) -> PooledTimer<'_> {
        let idle = self.idle().pop();
        let sleep = match idle {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline);
                sleep
            }
            None => Box::pin(sleep_until(deadline)),
        };
        PooledTimer { pool: self, sleep: Some(sleep) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running timer, returned for reuse when dropped.
struct PooledTimer<'a> {
    pool: &'a TimeoutPool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl PooledTimer<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Ready(()), |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for PooledTimer<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle();
        if idle.len() < POOL_SIZE {
            idle.extend(self.sleep.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reused_timer_fires_on_time() {
        let pool = TimeoutPool::default();
        let limit = Duration::from_secs(10);
        for _ in 0..3 {
            let soon = tokio::time::sleep(Duration::from_secs(7));
            assert_eq!(pool.timeout(limit, soon).await, Some(()));
            let began = Instant::now();
            assert_eq!(pool.timeout(limit, std::future::pending::<()>()).await, None);
            assert_eq!(began.elapsed(), limit);
        }
        assert_eq!(pool.idle().len(), 1);
    }
}
