//! The init of a pane: a fork of the keeper without exec, so it is tiny. It is the subreaper of
//! everything its program starts, including `setsid` and double forks. It signals only its own
//! children: their ids cannot be reused before it reaps them, so no other process is ever hit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait,
};

use crate::control::{ControlEvent, InitCommand, receive};
use crate::status::{Exit, ProgramStatus};

/// While everything is being killed, children are listed again at least this often: the kernel's
/// list may miss one that is just being reparented.
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// After this many rounds, what is left cannot be killed (another user's, or stuck in the kernel):
/// it is still tried, but not fifty times a second.
const FAST_ROUNDS: u32 = 100;
const SLOW_KILL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Init {
    control: OwnedFd,
    status_file: OwnedFd,
    /// Readable when a child changed.
    child_signal: OwnedFd,
    status: ProgramStatus,
    /// The program, until it is reaped.
    program: Option<Pid>,
    /// When the grace period ends.
    deadline: Option<Instant>,
    /// The signal that requested the end, for processes that outlive the program.
    last_signal: Option<Signal>,
    /// Children that got that signal individually.
    signalled: Vec<Pid>,
    killing: bool,
    rounds: u32,
}

impl Init {
    pub(crate) fn new(
        program: Pid,
        control: OwnedFd,
        status_file: OwnedFd,
        child_signal: OwnedFd,
    ) -> Self {
        let status =
            ProgramStatus::running(getpid().as_raw_nonzero().get(), program.as_raw_nonzero().get());
        Self {
            control,
            status_file,
            child_signal,
            status,
            program: Some(program),
            deadline: None,
            last_signal: None,
            signalled: Vec::new(),
            killing: false,
            rounds: 0,
        }
    }

    /// Watches the program until nothing of it is left.
    pub(crate) fn run(mut self) {
        self.publish();
        let mut control_open = true;
        while !self.reap() {
            if self.killing {
                self.kill_children();
            } else if self.program.is_none() {
                self.signal_orphans();
            }
            let (child, control) = self.wait(control_open);
            if child {
                drain(self.child_signal.as_fd());
            }
            if control {
                control_open = self.handle_command();
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.killing = true;
            }
        }
        self.status.empty = true;
        self.publish();
    }

    /// Waits for a child or a command; returns which of them is ready.
    fn wait(&self, control_open: bool) -> (bool, bool) {
        let pause = match (self.killing, self.deadline) {
            (true, _) if self.rounds < FAST_ROUNDS => Some(KILL_INTERVAL),
            (true, _) => Some(SLOW_KILL_INTERVAL),
            (false, Some(deadline)) => Some(deadline.saturating_duration_since(Instant::now())),
            (false, None) => None,
        };
        let pause = pause.map(|pause| Timespec {
            tv_sec: pause.as_secs().cast_signed(),
            tv_nsec: pause.subsec_nanos().into(),
        });
        let mut watched = [
            PollFd::new(&self.child_signal, PollFlags::IN),
            PollFd::new(&self.control, PollFlags::IN),
        ];
        let watched = if control_open { &mut watched[..] } else { &mut watched[..1] };
        if poll(watched, pause.as_ref()).is_err() {
            return (true, false);
        }
        let seen = |n: usize| watched.get(n).is_some_and(|w| !w.revents().is_empty());
        (seen(0), seen(1))
    }

    /// Executes one command; `false` once no more can follow.
    fn handle_command(&mut self) -> bool {
        match receive(&self.control) {
            ControlEvent::Nothing => {}
            ControlEvent::Command(InitCommand::Signal(signal)) => self.signal(signal),
            ControlEvent::Command(InitCommand::Stop { signal, grace }) => {
                // Signal 0 only sets the time; a signal that was sent before is still the last one.
                self.last_signal = Signal::from_named_raw(signal).or(self.last_signal);
                self.signal(signal);
                // A suspended program gets its signal only when it is continued.
                self.signal(libc::SIGCONT);
                let deadline = Instant::now() + grace;
                let earlier = self.deadline.is_none_or(|earlier| deadline < earlier);
                if earlier {
                    self.deadline = Some(deadline);
                }
            }
            ControlEvent::Command(InitCommand::Kill) => self.killing = true,
            ControlEvent::Closed => {
                // Neither a server nor a keeper is left, and no later one can reach this pane.
                self.killing = true;
                return false;
            }
        }
        true
    }

    /// Signals the program's group; after its end, the remaining processes individually.
    fn signal(&mut self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        // Until we reap the program, its id and its group's id are its own.
        let Some(program) = self.program else {
            self.signalled = children();
            for child in &self.signalled {
                let _ = kill_process(*child, signal);
            }
            return;
        };
        let _ = kill_process_group(program, signal);
    }

    /// Once the program has exited as requested, the processes it leaves behind get the same
    /// signal, each once: a server that was started from a shell has a group of its own, and gets
    /// the rest of the grace period.
    fn signal_orphans(&mut self) {
        let Some(signal) = self.last_signal else { return };
        let group = Pid::from_raw(self.status.program);
        let all = children();
        self.signalled.retain(|child| all.contains(child));
        for child in all {
            // The signal to the program's group reached its members.
            let is_member = rustix::process::getpgid(Some(child)).ok() == group;
            if !is_member && !self.signalled.contains(&child) {
                let _ = kill_process(child, signal);
                let _ = kill_process(child, Signal::CONT);
                self.signalled.push(child);
            }
        }
    }

    fn kill_children(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// Reaps every child that exited; `true` when none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) if Some(child) == self.program => {
                    self.program = None;
                    self.status.exit = Some(exit_of(status));
                    self.publish();
                }
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Writes the status and wakes the readers. A full socket already contains wake-ups.
    fn publish(&self) {
        let _ = self.status.write(&self.status_file);
        let _ = send(&self.control, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// The current children of this process.
pub(crate) fn children() -> Vec<Pid> {
    let listed = std::fs::read_to_string("/proc/thread-self/children");
    let ids = listed.map_or_else(
        |_| scan_proc(getpid().as_raw_nonzero().get()),
        |text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
    );
    ids.into_iter().filter_map(Pid::from_raw).collect()
}

/// The same by scanning `/proc`, for kernels without the list, and for other processes.
pub(crate) fn scan_proc(parent: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

fn parent_of(id: i32) -> Option<i32> {
    stat_field(id, 1)?.parse().ok()
}

/// The state of a process in `/proc`: `R`, `S`, `T` for stopped, `t` for traced, `Z`…
pub(crate) fn process_state(id: i32) -> Option<char> {
    stat_field(id, 0)?.chars().next()
}

/// A field of `/proc/ID/stat`, counted from the one after the name.
pub(crate) fn stat_field(id: i32, n: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may contain anything, including brackets and blanks; numbers follow it.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(n).map(str::to_owned)
}

fn drain(signals: BorrowedFd<'_>) {
    let mut buffer = [0u8; 1024];
    while rustix::io::read(signals, &mut buffer).is_ok_and(|bytes| bytes == buffer.len()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_after_the_process_name() {
        let own = getpid().as_raw_nonzero().get();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert_eq!(parent_of(own), Some(parent));
        assert!(scan_proc(parent).contains(&own));
        assert_eq!(parent_of(-1), None);
    }
}
