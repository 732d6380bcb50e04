//! Panes of another keeper, which died. Their inits are not children of this keeper: if one is
//! killed, its processes are reparented to the first process of the machine, and nothing tells any
//! more that they belong to a pane. So the processes below such an init are recorded periodically,
//! and killed if the init is gone before it could end them itself.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::init::stat_field;
use crate::message::Survivor;
use crate::pane::Pane;
use crate::status::Status;

/// How often the processes below the inits are recorded: a process that starts and is reparented in
/// between is missed, and a scan takes a few milliseconds.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// How soon killed processes are checked again, and how often: what is left then cannot be killed.
const KILL_AGAIN: Duration = Duration::from_millis(20);
const KILL_ROUNDS: u32 = 250;

/// A process, identified by its id and its start time in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    pid: i32,
    began: u64,
}

/// All processes, by their parents.
struct Everything(HashMap<i32, Vec<Known>>);

impl Everything {
    fn now() -> Self {
        let mut by_parent: HashMap<i32, Vec<Known>> = HashMap::new();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let parent = stat_field(pid, 1).and_then(|parent| parent.parse().ok());
            if let (Some(parent), Some(began)) = (parent, began(pid)) {
                by_parent.entry(parent).or_default().push(Known { pid, began });
            }
        }
        Self(by_parent)
    }

    /// All descendants of a process.
    fn below(&self, top: i32) -> Vec<Known> {
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

fn began(pid: i32) -> Option<u64> {
    stat_field(pid, 19)?.parse().ok()
}

impl Known {
    /// Whether it is running; a zombie is not.
    fn is_there(self) -> bool {
        let state = stat_field(self.pid, 0);
        began(self.pid) == Some(self.began) && !matches!(state.as_deref(), None | Some("Z" | "X"))
    }

    /// Kills it and no other: the descriptor is opened before the process is checked once more.
    fn kill(self) {
        let pid = Pid::from_raw(self.pid);
        let Some(Ok(life)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
        if self.is_there() {
            let _ = pidfd_send_signal(&life, Signal::KILL);
        }
    }
}

/// An init that is not a child of this keeper.
struct Adopted {
    init: i32,
    life: OwnedFd,
    status: OwnedFd,
    below: Vec<Known>,
}

/// All of them, and the processes they left behind.
#[derive(Default)]
pub(crate) struct Adoptions {
    inits: Vec<Adopted>,
    noted: Option<Instant>,
    left: Vec<Known>,
    rounds: u32,
}

impl Adoptions {
    /// Watches the init of a pane that another keeper started.
    pub(crate) fn add(&mut self, pane: &Pane) {
        let Ok(Some(Status { init, .. })) = pane.status() else { return };
        let life = Pid::from_raw(init).map(|init| pidfd_open(init, PidfdFlags::empty()));
        let (Some(Ok(life)), Ok(status)) = (life, pane.status.try_clone()) else { return };
        // Then the init still had that id when the descriptor was opened.
        if !pane.is_abandoned() {
            self.inits.push(Adopted { init, life, status, below: Vec::new() });
            self.noted = None;
            self.look();
        }
    }

    /// Readable when an init has exited.
    pub(crate) fn watch(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.inits.iter().map(|adopted| PollFd::new(&adopted.life, PollFlags::IN))
    }

    /// When to check again.
    pub(crate) fn pause(&self) -> Option<Duration> {
        if !self.left.is_empty() {
            return Some(KILL_AGAIN);
        }
        let noted = self.noted.filter(|_| !self.inits.is_empty())?;
        Some(NOTE_AGAIN.saturating_sub(noted.elapsed()))
    }

    /// Records the processes below the inits, and kills those that dead inits left behind.
    pub(crate) fn look(&mut self) {
        let (gone, there) = std::mem::take(&mut self.inits).into_iter().partition(Adopted::is_gone);
        self.inits = there;
        for adopted in gone {
            if !Status::read(&adopted.status).is_ok_and(|last| last.is_some_and(|last| last.empty))
            {
                self.left.extend(adopted.below);
                self.rounds = 0;
            }
        }
        self.end_left();
        let is_due = self.noted.is_none_or(|noted| noted.elapsed() >= NOTE_AGAIN);
        if is_due && !self.inits.is_empty() {
            let everything = Everything::now();
            for adopted in &mut self.inits {
                let below = everything.below(adopted.init);
                // If the init was killed during the scan, its processes were reparented already.
                if !adopted.is_gone() {
                    adopted.below = below;
                }
            }
            self.noted = Some(Instant::now());
        }
    }

    fn end_left(&mut self) {
        self.left.retain(|left| left.is_there());
        if self.left.is_empty() || self.rounds >= KILL_ROUNDS {
            return self.left.clear();
        }
        self.rounds += 1;
        let everything = Everything::now();
        for known in self.left.clone() {
            for below in everything.below(known.pid) {
                if !self.left.contains(&below) {
                    self.left.push(below);
                }
            }
        }
        self.left.iter().for_each(|left| left.kill());
    }

    /// Processes that were left behind and are still running.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.left.iter().filter_map(|left| crate::ending::survivor(left.pid)).collect()
    }

    /// Whether nothing is left to kill.
    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }
}

impl Adopted {
    fn is_gone(&self) -> bool {
        let mut watched = [PollFd::new(&self.life, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}
