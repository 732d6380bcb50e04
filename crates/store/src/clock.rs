//! The clocks of the machine. Components that store or compare times get a [`Clock`], so that tests can move it.
//! Deadlines within one run of the server are on tokio's clock instead, which tests can pause.
//!
//! A [`Moment`] has two times: the time since boot, which includes suspended time and is not affected when somebody
//! sets the wall clock; and the wall clock.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// The kernel's id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A moment on both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The boot that `up_ms` counts from; empty if unknown.
    pub boot: Arc<str>,
    /// Milliseconds since that boot.
    pub up_ms: u64,
    /// Milliseconds since 1970, according to the wall clock.
    pub wall_ms: u64,
}

/// A source of time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clocks.
    System {
        /// The id of the current boot.
        boot: Arc<str>,
    },
    /// A value that a test sets.
    Fake(Arc<watch::Sender<Moment>>),
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        Self::System { boot: boot.trim().into() }
    }

    /// The id of the current boot; empty if unknown.
    pub fn boot(&self) -> Arc<str> {
        self.now().boot
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        match self {
            Self::System { boot } => {
                Moment { boot: boot.clone(), up_ms: boottime_ms(), wall_ms: wall_ms() }
            }
            Self::Fake(now) => now.borrow().clone(),
        }
    }

    /// The wall clock, in milliseconds since 1970.
    pub fn wall_ms(&self) -> u64 {
        match self {
            Self::System { .. } => wall_ms(),
            Self::Fake(now) => now.borrow().wall_ms,
        }
    }

    /// An alarm on this clock. It needs the runtime.
    pub fn alarm(&self) -> io::Result<Alarm> {
        match self {
            Self::System { .. } => {
                let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
                #[expect(
                    deprecated,
                    reason = "the replacement is unsafe, because some types may change their \
                        descriptor; an OwnedFd does not"
                )]
                Ok(Alarm::System(AsyncFd::new(timer)?))
            }
            Self::Fake(now) => Ok(Alarm::Fake(now.subscribe())),
        }
    }
}

fn wall_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn boottime_ms() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(tv_sec), u64::try_from(tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000).saturating_add(nanoseconds.unwrap_or(0) / 1_000_000)
}

/// Waits for a time since boot.
#[derive(Debug)]
pub enum Alarm {
    /// A timer of the kernel.
    System(AsyncFd<OwnedFd>),
    /// Waits until a test moves the clock.
    Fake(watch::Receiver<Moment>),
}

impl Alarm {
    /// Waits until the machine has been up for `up_ms`, or forever without a time. The future may be dropped and the
    /// alarm used again.
    pub async fn until(&mut self, up_ms: Option<u64>) -> io::Result<()> {
        match self {
            Self::System(timer) => {
                set(timer.get_ref(), up_ms)?;
                wait(timer).await
            }
            Self::Fake(now) => {
                let due = |now: &Moment| up_ms.is_some_and(|up_ms| now.up_ms >= up_ms);
                now.wait_for(due).await.map(drop).map_err(io::Error::other)
            }
        }
    }
}

/// Sets the timer, or clears it.
fn set(timer: &OwnedFd, up_ms: Option<u64>) -> io::Result<()> {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let at = up_ms.map_or(never, |up_ms| Timespec {
        tv_sec: i64::try_from(up_ms / 1_000).unwrap_or(i64::MAX),
        // Zero would clear the timer.
        tv_nsec: i64::try_from(up_ms % 1_000 * 1_000_000).unwrap_or(0).max(1),
    });
    let once = Itimerspec { it_interval: never, it_value: at };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

/// Waits until the timer expires.
async fn wait(timer: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let mut ready = timer.readable().await?;
        let mut count = [0; 8];
        // The timer may have been set again since it became readable; then the wait continues.
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

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn the_systems_alarm_is_never_early_and_can_be_set_again() {
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
    fn a_boot_has_an_id() {
        let (clock, again) = (Clock::system(), Clock::system());
        assert!(!clock.now().boot.is_empty());
        assert_eq!(clock.now().boot, again.now().boot);
    }
}
