//! Panes of another keeper, which died. Their inits are not children of this keeper: if one is
//! killed, its processes are reparented to the first process of the machine, and no longer belong
//! to a pane visibly. So the processes below such an init are recorded periodically, and killed if
//! the init is gone before it could end them itself.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::init::stat_field;
use crate::message::Survivor;
use crate::pane::Pane;
use crate::status::ProgramStatus;

/// How often the processes below the inits are recorded: a process that starts and is reparented in
/// between is missed, and a scan takes a few milliseconds.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// How soon killed processes are checked again, and how often: what is left then cannot be killed.
const KILL_INTERVAL: Duration = Duration::from_millis(20);
const KILL_ROUNDS: u32 = 250;

/// A process, identified by its id and its start time in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessIdentity {
    pid: i32,
    start_time: u64,
}

/// All processes, by their parents.
struct ProcessSnapshot(HashMap<i32, Vec<ProcessIdentity>>);

impl ProcessSnapshot {
    fn now() -> Self {
        let mut by_parent: HashMap<i32, Vec<ProcessIdentity>> = HashMap::new();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let parent = stat_field(pid, 1).and_then(|parent| parent.parse().ok());
            if let (Some(parent), Some(start_time)) = (parent, start_time(pid)) {
                by_parent.entry(parent).or_default().push(ProcessIdentity { pid, start_time });
            }
        }
        Self(by_parent)
    }

    /// All descendants of a process.
    fn descendants(&self, top: i32) -> Vec<ProcessIdentity> {
        let mut found = Vec::new();
        let mut next = vec![top];
        while let Some(pid) = next.pop() {
            for child in self.0.get(&pid).into_iter().flatten() {
                if !found.contains(child) {
                    found.push(*child);
                    next.push(child.pid);
                }
            }
        }
        found
    }
}

fn start_time(pid: i32) -> Option<u64> {
    stat_field(pid, 19)?.parse().ok()
}

impl ProcessIdentity {
    /// Whether it is running; a zombie is not.
    fn is_running(self) -> bool {
        let state = stat_field(self.pid, 0);
        start_time(self.pid) == Some(self.start_time)
            && !matches!(state.as_deref(), None | Some("Z" | "X"))
    }

    /// Kills it and no other: the descriptor is opened before the process is checked once more.
    fn kill(self) {
        let pid = Pid::from_raw(self.pid);
        let Some(Ok(pidfd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
        if self.is_running() {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }
}

/// An init that is not a child of this keeper.
struct AdoptedInit {
    init: i32,
    pidfd: OwnedFd,
    status: OwnedFd,
    descendants: Vec<ProcessIdentity>,
}

/// All of them, and the processes they left behind.
#[derive(Default)]
pub(crate) struct AdoptedInits {
    inits: Vec<AdoptedInit>,
    scanned_at: Option<Instant>,
    leftovers: Vec<ProcessIdentity>,
    rounds: u32,
}

impl AdoptedInits {
    /// Watches the init of a pane that another keeper started.
    pub(crate) fn add(&mut self, pane: &Pane) {
        let Ok(Some(ProgramStatus { init, .. })) = pane.status() else { return };
        let pidfd = Pid::from_raw(init).map(|init| pidfd_open(init, PidfdFlags::empty()));
        let (Some(Ok(pidfd)), Ok(status)) = (pidfd, pane.status.try_clone()) else { return };
        // Then the init still had that id when the descriptor was opened.
        if !pane.is_init_gone() {
            self.inits.push(AdoptedInit { init, pidfd, status, descendants: Vec::new() });
            self.scanned_at = None;
            self.check();
        }
    }

    /// Readable when an init has exited.
    pub(crate) fn watch(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.inits.iter().map(|adopted| PollFd::new(&adopted.pidfd, PollFlags::IN))
    }

    /// When to check again.
    pub(crate) fn pause(&self) -> Option<Duration> {
        if !self.leftovers.is_empty() {
            return Some(KILL_INTERVAL);
        }
        let scanned_at = self.scanned_at.filter(|_| !self.inits.is_empty())?;
        Some(SCAN_INTERVAL.saturating_sub(scanned_at.elapsed()))
    }

    /// Records the processes below the inits, and kills those that dead inits left behind.
    pub(crate) fn check(&mut self) {
        let (gone, running) =
            std::mem::take(&mut self.inits).into_iter().partition(AdoptedInit::has_exited);
        self.inits = running;
        for adopted in gone {
            if !ProgramStatus::read(&adopted.status)
                .is_ok_and(|last| last.is_some_and(|last| last.empty))
            {
                self.leftovers.extend(adopted.descendants);
                self.rounds = 0;
            }
        }
        self.kill_leftovers();
        let is_due = self.scanned_at.is_none_or(|scanned_at| scanned_at.elapsed() >= SCAN_INTERVAL);
        if is_due && !self.inits.is_empty() {
            let processes = ProcessSnapshot::now();
            for adopted in &mut self.inits {
                let descendants = processes.descendants(adopted.init);
                // If the init was killed during the scan, its processes were reparented already.
                if !adopted.has_exited() {
                    adopted.descendants = descendants;
                }
            }
            self.scanned_at = Some(Instant::now());
        }
    }

    fn kill_leftovers(&mut self) {
        self.leftovers.retain(|leftovers| leftovers.is_running());
        if self.leftovers.is_empty() || self.rounds >= KILL_ROUNDS {
            return self.leftovers.clear();
        }
        self.rounds += 1;
        let processes = ProcessSnapshot::now();
        for known in self.leftovers.clone() {
            for descendants in processes.descendants(known.pid) {
                if !self.leftovers.contains(&descendants) {
                    self.leftovers.push(descendants);
                }
            }
        }
        self.leftovers.iter().for_each(|leftovers| leftovers.kill());
    }

    /// Processes that were left behind and are still running.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.leftovers
            .iter()
            .filter_map(|leftovers| crate::ending::survivor(leftovers.pid))
            .collect()
    }

    /// Whether nothing is left to kill.
    pub(crate) fn is_done(&self) -> bool {
        self.leftovers.is_empty()
    }
}

impl AdoptedInit {
    fn has_exited(&self) -> bool {
        let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}
