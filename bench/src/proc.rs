//! What the kernel says of processes: time, memory, wake-ups.

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

/// Resident memory, shared pages included, in MiB.
pub(crate) fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(field(&rollup, "Rss:").context("no Rss")? as f64 / 1024.0)
}

/// How often the threads of some processes went to sleep of their own, that is, woke up before.
pub(crate) fn wakeups(pids: &[u32]) -> u64 {
    let of_one = |pid: &u32| -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        threads
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok())
            .filter_map(|status| field(&status, "voluntary_ctxt_switches:"))
            .sum()
    };
    pids.iter().map(of_one).sum()
}

/// All processes whose executable file is called `patterm` and that were started in `folder`.
pub(crate) fn pattern_processes(folder: &std::path::Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}"));
            let ours = link("exe").is_ok_and(|exe| exe.ends_with("patterm"));
            ours && link("cwd").is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .collect()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
