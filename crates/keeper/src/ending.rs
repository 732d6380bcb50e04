//! Panes that are being ended. An init ends everything below it; the keeper makes sure that the
//! init can, and reports what is left.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::init::{process_state, scan_proc};
use crate::message::Survivor;
use crate::pane::Pane;

/// How often a pane that is being ended is checked: its program may stop the init repeatedly.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// After this, what is left cannot be killed (another user's, or stuck in the kernel) and is
/// checked once a second.
const FAST_CHECK_PERIOD: Duration = Duration::from_secs(10);
const SLOW_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An init that is still stopped or traced after this is killed. Everything below it becomes a
/// child of the keeper, which kills it.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// A pane that is being ended.
pub(crate) struct EndingPane {
    pane: Pane,
    /// The init and its pidfd; `None` for an adopted pane, whose init is not a child of this
    /// keeper.
    pub(crate) init: Option<(Pid, OwnedFd)>,
    adopted: bool,
    since: Instant,
}

impl EndingPane {
    /// Begins to end everything in a pane.
    pub(crate) fn begin(pane: Pane, init: Option<(Pid, OwnedFd)>, adopted: bool) -> Self {
        let _ = pane.kill();
        Self { pane, init, adopted, since: Instant::now() }
    }

    /// Whether nothing is left in it.
    pub(crate) fn is_done(&self) -> bool {
        self.init.is_none() && (!self.adopted || self.pane.is_empty())
    }

    /// Readable or hung up when the init has exited.
    pub(crate) fn watch(&self) -> PollFd<'_> {
        match &self.init {
            Some((_, pidfd)) => PollFd::new(pidfd, PollFlags::IN),
            // The server may consume the events of an adopted init; its hang-up is seen by both.
            None => PollFd::from_borrowed_fd(self.pane.events(), PollFlags::empty()),
        }
    }

    /// When to check it again.
    pub(crate) fn pause(&self) -> Duration {
        if self.since.elapsed() < FAST_CHECK_PERIOD { CHECK_INTERVAL } else { SLOW_CHECK_INTERVAL }
    }

    /// Continues an init that is stopped, and kills one that does not stay continued.
    pub(crate) fn unblock_init(&self) {
        let Some((init, pidfd)) = &self.init else {
            return self.pane.continue_init();
        };
        if !matches!(process_state(init.as_raw_nonzero().get()), Some('T' | 't')) {
            return;
        }
        let is_in_time = self.since.elapsed() < CONTINUE_TIMEOUT;
        let signal = if is_in_time { Signal::CONT } else { Signal::KILL };
        let _ = pidfd_send_signal(pidfd, signal);
    }

    /// What is running in it: the processes below the init, or the init if there are none.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        let init = match &self.init {
            Some((init, _)) => init.as_raw_nonzero().get(),
            None => match self.pane.status() {
                Ok(Some(status)) if !self.pane.is_empty() => status.init,
                _ => return Vec::new(),
            },
        };
        let below = below(init);
        if below.is_empty() { survivor(init).into_iter().collect() } else { below }
    }
}

/// All descendants of a process.
fn below(top: i32) -> Vec<Survivor> {
    let mut found = Vec::new();
    let mut next = vec![top];
    while let Some(parent) = next.pop() {
        let children = scan_proc(parent);
        found.extend(children.iter().filter_map(|child| survivor(*child)));
        next.extend(children);
    }
    found
}

/// A running process; `None` for a zombie.
pub(crate) fn survivor(pid: i32) -> Option<Survivor> {
    if matches!(process_state(pid)?, 'Z' | 'X') {
        return None;
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(Survivor { pid, name: name.trim_end().to_owned() })
}
