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

/// A process and those above it, the nearest first.
pub(crate) fn line_of(pid: i32) -> Vec<i32> {
    let mut line = Vec::new();
    let mut next = Some(pid);
    // A process that ends meanwhile may be another one by now: no circle lasts.
    while let Some(pid) = next.filter(|pid| *pid > 0 && !line.contains(pid)) {
        line.push(pid);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        next = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    }
    line
}

/// All processes below one.
pub(crate) fn below(init: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![init];
    while let Some(pid) = next.pop() {
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Ok(children) = fs::read_to_string(task.path().join("children")) else { continue };
            let children = children.split_whitespace().filter_map(|child| child.parse().ok());
            for child in children {
                if !found.contains(&child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_rows_of_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n\
            \x20  1: 0100007F:A0B2 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0\n\
            \x20  2: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0\n";
        assert_eq!(listening_in(table), [(5432, 4242), (3000, 77)]);
    }
}
