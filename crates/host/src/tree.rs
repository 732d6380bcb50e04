//! A process with everything below it, as the operating system sees it: what it uses, and where it
//! listens.

use std::collections::BTreeSet;
use std::fs;

use schemars::JsonSchema;
use serde::Serialize;

/// What a tree of processes uses.
#[derive(Debug, Default, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Usage {
    /// How many processes there are.
    processes: usize,
    /// Seconds of CPU time they have used.
    cpu_seconds: f64,
    /// Bytes of memory they have.
    memory_bytes: u64,
}

/// Ticks of the kernel's clock in a second, as it tells all programs on Linux.
const TICKS: f64 = 100.0;

const PAGE_BYTES: u64 = 4096;

/// What everything below an init uses.
pub(crate) fn usage(init: i32) -> Usage {
    let mut usage = Usage::default();
    for pid in below(init) {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // After the name, which may hold anything, come numbers; the state is the first of them.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        usage.processes += 1;
        usage.cpu_seconds += (field(11) + field(12)) as f64 / TICKS;
        usage.memory_bytes += field(21) * PAGE_BYTES;
    }
    usage
}

/// The TCP ports on which something below an init listens.
pub(crate) fn listening(init: i32) -> BTreeSet<u16> {
    let mut inodes = BTreeSet::new();
    for pid in below(init) {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy();
            let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
        }
    }
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_in(&table))
        .filter(|(_, inode)| inodes.contains(inode))
        .map(|(port, _)| port)
        .collect()
}

/// Ports and sockets of a kernel table that are listened on.
fn listening_in(table: &str) -> Vec<(u16, u64)> {
    const LISTEN: &str = "0A";
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = fields.get(1)?.rsplit(':').next()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = fields.get(9)?.parse().ok()?;
        (*fields.get(3)? == LISTEN).then_some((port, inode))
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// The most processes that stand above each other: more than any shell nests, and few enough to look
/// at whenever a client connects.
pub(crate) const LONGEST_LINE: usize = 1_000;

/// How often a line is followed until two looks in a row agree. A parent that ends at that moment
/// hands its children on once; nothing but a program that does so on purpose needs more.
const LINE_TRIES: usize = 10;

/// A process and those above it, the nearest first, up to the first process that we can see. `None`
/// if the process is gone, or if the line changes all the time or is too long: a part of it must not be
/// taken for the whole, since the rest decides in whose pane the process runs.
pub(crate) fn line_of(pid: i32) -> Option<Vec<i32>> {
    let mut before = follow_line(pid);
    for _ in 0..LINE_TRIES {
        let again = follow_line(pid);
        if again.is_some() && again == before {
            return again;
        }
        before = again;
    }
    None
}

/// One look at the line above a process; `None` if a process in it ended before it was looked at.
fn follow_line(pid: i32) -> Option<Vec<i32>> {
    let mut line = Vec::new();
    let mut next = pid;
    while next > 0 {
        // A process that ended may be another one by now: no circle lasts.
        if line.len() == LONGEST_LINE || line.contains(&next) {
            return None;
        }
        next = match parent_of(next) {
            Some(parent) => {
                line.push(next);
                parent
            }
            // Where /proc hides what belongs to others, the line ends with what is ours.
            None if !line.is_empty() && is_hidden(next) => break,
            None => return None,
        };
    }
    (!line.is_empty()).then_some(line)
}

/// The process above a process; 0 for the first.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    stat_field(pid, 1)?.parse().ok()
}

/// The controlling terminal of a process, by its major and minor number.
pub(crate) fn terminal(pid: i32) -> Option<(u32, u32)> {
    let number: i32 = stat_field(pid, 4)?.parse().ok()?;
    let number = number.cast_unsigned();
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    (number != 0).then_some(((number >> 8) & 0xfff, minor))
}

/// When a process began, in milliseconds since 1970.
pub(crate) fn started_at(pid: i32) -> Option<u64> {
    let ticks: f64 = stat_field(pid, 19)?.parse().ok()?;
    let kernel = fs::read_to_string("/proc/stat").ok()?;
    let boot = kernel.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: u64 = boot.trim().parse().ok()?;
    Some(boot * 1000 + (ticks * 1000.0 / TICKS) as u64)
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn stat_field(pid: i32, n: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(n).map(str::to_owned)
}

/// Whether a process that cannot be looked at is there all the same: another user's.
fn is_hidden(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::PERM))
}

/// All processes below one.
pub(crate) fn below(init: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![init];
    while let Some(pid) = next.pop() {
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// The processes right below one.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let told = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |told: String| told.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    told.flat_map(numbers as fn(String) -> Vec<i32>).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_above_a_process_is_followed_to_its_end_or_not_told_at_all() {
        let own = i32::try_from(std::process::id()).unwrap();
        let line = line_of(own).unwrap();
        assert_eq!(line[0], own);
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert_eq!(line[1], parent);
        assert_eq!(parent_of(*line.last().unwrap()), Some(0), "{line:?}");
        let now = patterm_store::clock::now_ms();
        assert!(started_at(own).unwrap() <= now + 1000, "the kernel counts whole seconds");
        assert!(started_at(line[1]).unwrap() <= started_at(own).unwrap());
        // No process has the highest id there could be.
        assert_eq!(line_of(i32::MAX), None);
        assert_eq!(line_of(0), None);
    }

    #[test]
    fn listening_rows_of_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n\
            \x20  1: 0100007F:A0B2 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0\n\
            \x20  2: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0\n";
        assert_eq!(listening_in(table), [(5432, 4242), (3000, 77)]);
    }
}
