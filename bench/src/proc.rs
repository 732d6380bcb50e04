//! What the kernel says of processes: time, memory, wake-ups.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

/// Length of a tick in which the kernel counts time, fixed for user space on Linux.
const TICK: Duration = Duration::from_millis(10);

/// Time on a processor of a process and all its threads.
pub(crate) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("no fields")?;
    let ticks: u32 =
        fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    Ok(TICK * ticks)
}

/// The same to the nanosecond, of the threads that it has now.
pub(crate) fn cpu_precisely(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(of).sum())
}

/// Memory in MiB, by its name in the kernel's summary: `Rss:`, resident, shared pages included;
/// `Anonymous:`, the part that is not backed by a file.
pub(crate) fn memory_mib(pid: u32, name: &str) -> anyhow::Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(field(&rollup, name).context("no such memory")? as f64 / 1024.0)
}

/// A process's peak memory in MiB, shared pages included.
pub(crate) fn most_memory_mib(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "VmHWM:").context("no such memory")? as f64 / 1024.0)
}

/// How often each thread of some processes went to sleep voluntarily, that is, woke up before.
pub(crate) fn wakeups(pids: &[u32]) -> HashMap<PathBuf, u64> {
    let threads = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    pids.iter()
        .flat_map(threads)
        .flatten()
        .filter_map(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
            Some((thread.path(), field(&status, "voluntary_ctxt_switches:")?))
        })
        .collect()
}

/// All processes whose executable file is called `patterm` and that were started in `folder`.
pub(crate) fn patterm_processes(folder: &Path) -> Vec<u32> {
    let mut pids = processes_in(folder);
    pids.retain(|pid| link(*pid, "exe").is_some_and(|exe| exe.ends_with("patterm")));
    pids
}

/// All processes that were started in `folder`.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| link(*pid, "cwd").is_some_and(|cwd| cwd.starts_with(folder)))
        .collect()
}

/// Memory of some processes in MiB, pages that several of them share counted once, and how many of
/// them there are.
pub(crate) fn pss_and_count(pids: &[u32]) -> (f64, usize) {
    (pids.iter().filter_map(|pid| memory_mib(*pid, "Pss:").ok()).sum(), pids.len())
}

/// How many entries one of a process's folders has: `fd` for its descriptors, `task` for its threads.
pub(crate) fn entries(pid: u32, folder: &str) -> f64 {
    std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count) as f64
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The keeper of a folder's project: the patterm process with most children.
pub(crate) fn keeper(folder: &Path) -> anyhow::Result<u32> {
    let ours = patterm_processes(folder);
    let children = |pid: &u32| ours.iter().filter(|child| parent(**child) == Some(*pid)).count();
    ours.iter().copied().max_by_key(|pid| children(pid)).context("no keeper")
}

/// Zombie children of some processes.
pub(crate) fn zombies_of(pids: &[u32]) -> usize {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let ended = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
            ended && parent(*pid).is_some_and(|parent| pids.contains(&parent))
        })
        .count()
}

/// The target of a link in a process's `/proc` folder.
pub(crate) fn link(pid: u32, name: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/{name}")).ok()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Waits for a measured time, or until others are idle.
#[expect(clippy::disallowed_methods, reason = "rates and idleness need time")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
