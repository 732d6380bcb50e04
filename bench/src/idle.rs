//! 500 panes that do nothing: what each costs in memory, and how often anything wakes up.

use std::time::{Duration, Instant};

use crate::peers::rounds;
use crate::row::{Row, Target, middle};
use crate::session::Workspace;
use crate::{Measured, long, proc};

const PANES: usize = 500;

/// How long wake-ups are counted, in the short and the long form.
const SECONDS: [u64; 2] = [10, 60];

/// Long enough for startup work to finish.
const SETTLE: Duration = Duration::from_secs(2);

/// An idle program is sampled less and less often, and after 16 s no more.
const REST: Duration = Duration::from_secs(20);

/// Rounds, each with its own server.
const ROUNDS: usize = 3;

/// The results of a round.
struct Round {
    /// Memory of the server with one pane, and with all.
    one_mib: f64,
    all_mib: f64,
    spawn_ms: f64,
    /// In a second.
    wakeups: f64,
    processes: usize,
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let all_rounds = rounds(ROUNDS);
    let rounds: Vec<Round> = (0..all_rounds).map(|_| round()).collect::<Result<_, _>>()?;
    let all = |of: fn(&Round) -> f64| middle(rounds.iter().map(of).collect());
    let each = all(|round| (round.all_mib - round.one_mib) / (PANES - 1) as f64);
    let mib = format!("{:.1} → {:.1} MiB", all(|round| round.one_mib), all(|round| round.all_mib));
    let processes = format!("{} processes", all(|round| round.processes as f64));
    let wakeups = all(|round| round.wakeups);
    let what = |part: &str| format!("{PANES} idle panes: {part}");
    Ok(vec![
        Row::number(
            what("server memory per pane beyond the first (Rss)"),
            each,
            "MiB",
            Target::AtMost(0.1),
        )
        .with_details(mib),
        Row::number(what("wake-ups of all patterm processes"), wakeups, "/s", Target::AtMost(0.0))
            .with_details(processes),
        Row::number(what("a spawn"), all(|round| round.spawn_ms), "ms", Target::Less),
    ]
    .into())
}

fn round() -> anyhow::Result<Round> {
    let workspace = Workspace::new()?;
    let mut tools = workspace.connect()?;
    let mut spawn = || tools.spawn(&["sleep", "1000000"]);
    spawn()?;
    proc::pause(SETTLE);
    let one_mib = proc::memory_mib(workspace.server, "Rss:")?;
    let start = Instant::now();
    for _ in 1..PANES {
        spawn()?;
    }
    let spawn_ms = start.elapsed().as_secs_f64() * 1e3 / (PANES - 1) as f64;
    proc::pause(REST);
    let all_mib = proc::memory_mib(workspace.server, "Rss:")?;
    let pids = proc::patterm_processes(workspace.folder());
    anyhow::ensure!(pids.len() > PANES, "only {} processes were found", pids.len());
    let seconds = SECONDS[usize::from(long())];
    let before = proc::wakeups(&pids);
    proc::pause(Duration::from_secs(seconds));
    // A thread that is gone had no work.
    let after = proc::wakeups(&pids);
    let woken: u64 =
        after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0)).sum();
    let wakeups = woken as f64 / seconds as f64;
    Ok(Round { one_mib, all_mib, spawn_ms, wakeups, processes: pids.len() })
}
