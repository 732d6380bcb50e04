//! Panes of another keeper, which died. Their inits are no children of this one: should one
//! be killed, what it watched over is handed to the first process of the machine, and nothing says any
//! more that it belongs to a pane. So what is below such an init is noted from time to time, and ended
//! when the init is gone before it could do so itself.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::init::stat_field;
use crate::message::Survivor;
use crate::pane::Pane;
use crate::status::Status;

/// How often it is noted what is below the inits: what begins and is handed on within that time is
/// missed, and looking costs a few milliseconds.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// How soon it is looked at again whether what was killed is gone, and how often: what is there then
/// cannot be killed.
const KILL_AGAIN: Duration = Duration::from_millis(20);
const KILL_ROUNDS: u32 = 250;

/// A process, by more than its number: when it began, in ticks since the machine did.
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

    /// All processes below one.
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
    /// Whether it runs. One that has ended and waits to be reaped does not.
    fn is_there(self) -> bool {
        let state = stat_field(self.pid, 0);
        began(self.pid) == Some(self.began) && !matches!(state.as_deref(), None | Some("Z" | "X"))
    }

    /// Kills it, and no other: the descriptor is opened before it is looked at once more.
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

/// All of them, and what they left behind.
#[derive(Default)]
pub(crate) struct Adoptions {
    inits: Vec<Adopted>,
    noted: Option<Instant>,
    left: Vec<Known>,
    rounds: u32,
}

impl Adoptions {
    /// Watches over the init of a pane that another keeper started.
    pub(crate) fn add(&mut self, pane: &Pane) {
        let Ok(Some(Status { init, .. })) = pane.status() else { return };
        let life = Pid::from_raw(init).map(|init| pidfd_open(init, PidfdFlags::empty()));
        let (Some(Ok(life)), Ok(status)) = (life, pane.status.try_clone()) else { return };
        // Then it had that number when the descriptor was opened.
        if !pane.is_abandoned() {
            self.inits.push(Adopted { init, life, status, below: Vec::new() });
            self.noted = None;
            self.look();
        }
    }

    /// Readable when an init has ended.
    pub(crate) fn watch(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.inits.iter().map(|adopted| PollFd::new(&adopted.life, PollFlags::IN))
    }

    /// When to look again.
    pub(crate) fn pause(&self) -> Option<Duration> {
        if !self.left.is_empty() {
            return Some(KILL_AGAIN);
        }
        let noted = self.noted.filter(|_| !self.inits.is_empty())?;
        Some(NOTE_AGAIN.saturating_sub(noted.elapsed()))
    }

    /// Notes what is below the inits, and ends what those that are gone left behind.
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
                // Killed while it was looked at, it has nothing below it any more.
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

    /// What was left behind and runs on.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.left.iter().filter_map(|left| crate::ending::survivor(left.pid)).collect()
    }

    /// Whether nothing is to be ended.
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
