//! What the processes in a terminal do, according to the kernel: how much CPU time they have used,
//! and whether one of them is waiting for input from that terminal.
//!
//! What a thread waits for is in `/proc/PID/task/TID/syscall`. If the kernel hides it from this
//! process (Yama's `ptrace_scope`), no process counts as waiting.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

use rustix::fs::{major, minor};

use patterm_panes::tree;

/// How many threads of one process are checked: those that read a terminal are among the first.
const THREADS: usize = 64;

/// How many descriptors of one `poll` are checked.
const POLLED: usize = 64;

/// How many descriptors one `select` can name.
const SELECTED: usize = 1024;

/// `POLLIN` and `EPOLLIN`.
const READABLE: u64 = 1;

/// `/dev/tty`, which is the controlling terminal of the process that opens it.
const OWN_TERMINAL: (u32, u32) = (5, 0);

/// All processes of a pane at a moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Census {
    /// CPU time that they and the children they waited for have used, in the kernel's ticks of 10
    /// ms.
    pub ticks: u64,
    /// A foreground process is waiting for input from the terminal.
    pub waits: bool,
}

impl Census {
    /// Takes the census of everything below an init.
    pub(crate) fn of(init: i32) -> Self {
        let mut census = Self::default();
        for pid in tree::below(init) {
            let Some(stat) = Stat::of(pid) else { continue };
            census.ticks += stat.ticks;
            census.waits |= stat.is_foreground && waits(pid, stat.terminal);
        }
        census
    }
}

struct Stat {
    /// Its process group is in the foreground of its terminal.
    is_foreground: bool,
    /// Its controlling terminal.
    terminal: (u32, u32),
    ticks: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain anything; the fields after it are the state and numbers.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i64>().ok());
        let device = u32::try_from(number(4)?).ok()?;
        let ticks = (11..=14).filter_map(number).map(|ticks| u64::try_from(ticks).unwrap_or(0));
        Some(Self {
            is_foreground: number(2)? == number(5)?,
            terminal: ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00)),
            ticks: ticks.sum(),
        })
    }
}

/// Whether a thread of a process is waiting for input from a terminal.
fn waits(pid: i32, terminal: (u32, u32)) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let process = Process { pid, terminal };
    threads.take(THREADS).any(|thread| {
        let call = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
        Call::parse(&call).is_some_and(|call| process.reads_by(&call))
    })
}

/// A system call that a thread is executing.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    number: i64,
    /// Its first two arguments.
    arguments: [u64; 2],
}

impl Call {
    /// Parses a line of `/proc`: `running`, or the number and the arguments.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut argument = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        Some(Self { number, arguments: [argument()?, argument()?] })
    }
}

struct Process {
    pid: i32,
    terminal: (u32, u32),
}

impl Process {
    /// Whether a system call waits for input from the terminal.
    fn reads_by(&self, call: &Call) -> bool {
        let [first, second] = call.arguments;
        match call.number {
            libc::SYS_read | libc::SYS_readv => self.is_terminal(first),
            libc::SYS_pselect6 => self.selects(first, second),
            libc::SYS_ppoll => self.polls(first, second),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => self.epolls(first),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => self.selects(first, second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => self.polls(first, second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => self.epolls(first),
            _ => false,
        }
    }

    fn is_terminal(&self, descriptor: u64) -> bool {
        let Ok(file) = fs::metadata(format!("/proc/{}/fd/{descriptor}", self.pid)) else {
            return false;
        };
        let device = (major(file.rdev()), minor(file.rdev()));
        file.file_type().is_char_device() && (device == self.terminal || device == OWN_TERMINAL)
    }

    /// `select(count, set, …)`.
    fn selects(&self, count: u64, set: u64) -> bool {
        let count = usize::try_from(count).unwrap_or(SELECTED).min(SELECTED);
        let Some(bits) = self.memory(set, count.div_ceil(8)) else { return false };
        let named = (0..count).filter(|at| bits[at / 8] & (1 << (at % 8)) != 0);
        named.into_iter().any(|descriptor| self.is_terminal(descriptor as u64))
    }

    /// `poll(entries, count, …)`; each entry has a descriptor, requested events and returned
    /// events.
    fn polls(&self, entries: u64, count: u64) -> bool {
        let count = usize::try_from(count).unwrap_or(POLLED).min(POLLED);
        let Some(bytes) = self.memory(entries, count * 8) else { return false };
        bytes.chunks_exact(8).any(|entry| {
            let descriptor = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
            let events = u64::from(u16::from_ne_bytes([entry[4], entry[5]]));
            let descriptor = u64::try_from(descriptor);
            events & READABLE != 0 && descriptor.is_ok_and(|fd| self.is_terminal(fd))
        })
    }

    /// `epoll_wait(descriptor, …)`.
    fn epolls(&self, descriptor: u64) -> bool {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.pid));
        let info = info.unwrap_or_default();
        info.lines()
            .filter_map(target)
            .any(|(descriptor, events)| events & READABLE != 0 && self.is_terminal(descriptor))
    }

    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let memory = File::open(format!("/proc/{}/mem", self.pid)).ok()?;
        memory.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }
}

/// A descriptor that an epoll instance watches, and for which events: `tfd: 21 events: 19 …`.
fn target(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("tfd:")?.split_whitespace();
    let descriptor = words.next()?.parse().ok()?;
    let events = words.nth(1)?;
    Some((descriptor, u64::from_str_radix(events, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_and_epoll_targets_are_parsed_from_proc() {
        let call = |line: &str| Call::parse(line).map(|call| (call.number, call.arguments));
        assert_eq!(
            call("0 0x0 0x7f26ad619000 0x20000 0x7ffe 0x7f26\n"),
            Some((0, [0, 0x7f26_ad61_9000]))
        );
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x7ffd 0x7f1c\n"), None);
        assert_eq!(
            target("tfd:       21 events:       19 data:  15 pos:0 ino:4"),
            Some((21, 0x19))
        );
        assert_eq!(target("pos:\t0"), None);
    }
}
