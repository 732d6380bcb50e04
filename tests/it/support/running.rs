//! Processes by id: signalling them, and waiting for their exit.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that was alive when this value was created. Its id cannot come to mean another
/// process.
#[derive(Debug)]
pub(crate) struct Running(OwnedFd);

impl Running {
    pub(crate) fn of(pid: u32) -> Self {
        Self::find(pid).unwrap_or_else(|| panic!("no process {pid}"))
    }

    /// `None` if there is no such process.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(pid.cast_signed())?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.0, signal).unwrap();
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&self) {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None).unwrap();
    }

    /// Waits until the process has ended or the deadline passes; returns whether it has ended.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let left =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)).unwrap() > 0
    }

    pub(crate) fn is_gone(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)).unwrap() > 0
    }
}

/// The ids of the processes whose working directory is in a folder. Zombies have none.
pub(crate) fn running_in(folder: &Path) -> Vec<u32> {
    let folder = folder.canonicalize().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(&folder))
        })
        .collect()
}
