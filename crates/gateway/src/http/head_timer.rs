//! The timeout for a request's headers, for hyper: one timer per connection, reset for each request
//! instead of created again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type Kept = Option<Pin<Box<tokio::time::Sleep>>>;

/// The timer of a connection, while it is not used.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadTimer(Arc<Mutex<Kept>>);

impl HeadTimer {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = deadline.into();
        let sleep = match self.kept().take() {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline);
                sleep
            }
            None => Box::pin(tokio::time::sleep_until(deadline)),
        };
        Box::pin(Lent { of: self.clone(), sleep: Some(sleep) })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// The timer while headers are read.
struct Lent {
    of: HeadTimer,
    sleep: Kept,
}

impl Sleep for Lent {}

impl Future for Lent {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Ready(()), |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.of.kept() = self.sleep.take();
    }
}
