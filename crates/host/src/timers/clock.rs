//! The clock that timers run on: time since the machine booted, suspended time included, which no
//! setting of the wall clock moves; and the one alarm that wakes the server for all of them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
#[cfg(test)]
use tokio::sync::watch;

use patterm_store::clock::now_ms;

/// Where the kernel says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A moment on both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Which boot of the machine `up_ms` counts from; empty where nobody knows.
    pub(super) boot: Arc<str>,
    /// Whole milliseconds since then.
    pub(super) up_ms: u64,
    /// Milliseconds since 1970, as far as the machine knows.
    pub(super) wall_ms: u64,
}

/// What tells the time.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// The machine.
    System {
        /// This boot of it.
        boot: Arc<str>,
    },
    /// A test.
    #[cfg(test)]
    Fake(Arc<watch::Sender<Moment>>),
}

impl Clock {
    /// The machine's clock.
    pub(crate) fn system() -> Self {
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        Self::System { boot: boot.trim().into() }
    }

    /// Which boot of the machine this is; empty where nobody knows.
    pub(crate) fn boot(&self) -> Arc<str> {
        self.now().boot
    }

    pub(crate) fn now(&self) -> Moment {
        match self {
            Self::System { boot } => {
                Moment { boot: boot.clone(), up_ms: boottime_ms(), wall_ms: now_ms() }
            }
            #[cfg(test)]
            Self::Fake(now) => now.borrow().clone(),
        }
    }

    /// An alarm on this clock. It needs the runtime.
    pub(super) fn alarm(&self) -> io::Result<Alarm> {
        match self {
            Self::System { .. } => {
                let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
                #[expect(
                    deprecated,
                    reason = "the other one is unsafe for types that may lie about their descriptor; \
                        an OwnedFd keeps its own"
                )]
                Ok(Alarm::System(AsyncFd::new(timer)?))
            }
            #[cfg(test)]
            Self::Fake(now) => Ok(Alarm::Fake(now.subscribe())),
        }
    }
}

fn boottime_ms() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(tv_sec), u64::try_from(tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000).saturating_add(nanoseconds.unwrap_or(0) / 1_000_000)
}

/// Wakes at a moment.
#[derive(Debug)]
pub(super) enum Alarm {
    System(AsyncFd<OwnedFd>),
    #[cfg(test)]
    Fake(watch::Receiver<Moment>),
}

impl Alarm {
    /// Waits until the machine has been up for so long; without a time, for ever. It may be
    /// dropped at any point and asked anew.
    pub(super) async fn until(&mut self, up_ms: Option<u64>) -> io::Result<()> {
        match self {
            Self::System(timer) => {
                set(timer.get_ref(), up_ms)?;
                wait(timer).await
            }
            #[cfg(test)]
            Self::Fake(now) => {
                let due = |now: &Moment| up_ms.is_some_and(|up_ms| now.up_ms >= up_ms);
                now.wait_for(due).await.map(drop).map_err(io::Error::other)
            }
        }
    }
}

/// Sets the timer to a moment, or to none.
fn set(timer: &OwnedFd, up_ms: Option<u64>) -> io::Result<()> {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let at = up_ms.map_or(never, |up_ms| Timespec {
        tv_sec: i64::try_from(up_ms / 1_000).unwrap_or(i64::MAX),
        // All zero would mean never.
        tv_nsec: i64::try_from(up_ms % 1_000 * 1_000_000).unwrap_or(0).max(1),
    });
    let once = Itimerspec { it_interval: never, it_value: at };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

/// Waits until the timer has gone off.
async fn wait(timer: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let mut ready = timer.readable().await?;
        let mut count = [0; 8];
        // What was set since may have taken back what made it readable: then the wait goes on.
        match rustix::io::read(timer, &mut count) {
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
    }

    #[test]
    fn the_machines_alarm_is_never_early_and_can_be_set_anew() {
        run(async {
            let clock = Clock::system();
            let mut alarm = clock.alarm().unwrap();
            let due = clock.now().up_ms + 20;
            for far in [Some(due + 3_600_000), None] {
                let wait = alarm.until(far);
                let moment = tokio::time::timeout(std::time::Duration::from_millis(1), wait);
                assert!(moment.await.is_err(), "{far:?} is not now");
            }
            alarm.until(Some(due)).await.unwrap();
            assert!(clock.now().up_ms >= due);
            alarm.until(Some(0)).await.unwrap();
            alarm.until(Some(due)).await.unwrap();
        });
    }

    #[test]
    fn a_boot_has_a_name() {
        let (clock, again) = (Clock::system(), Clock::system());
        assert!(!clock.now().boot.is_empty());
        assert_eq!(clock.now().boot, again.now().boot);
    }
}
