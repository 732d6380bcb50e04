//! 500 panes that do nothing: what each costs in memory, and how often anything wakes up.

use std::time::{Duration, Instant};

use crate::row::{Bar, Row, middle};
use crate::session::Place;
use crate::{Measured, long, proc};

const PANES: usize = 500;

/// For how long wake-ups are counted, in the short form and the long one.
const SECONDS: [u64; 2] = [10, 60];

/// Long enough for what a start leaves behind to be done.
const SETTLE: Duration = Duration::from_secs(2);

/// A program that shows nothing is looked at less and less often, and after 16 s no more.
const REST: Duration = Duration::from_secs(20);

/// Turns, each with a server of its own.
const ROUNDS: usize = 3;

/// What a turn came to.
struct Turn {
    /// Memory of the server with one pane, and with all.
    one_mib: f64,
    all_mib: f64,
    spawn_ms: f64,
    /// In a second.
    wakeups: f64,
    processes: usize,
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let turns: Vec<Turn> = (0..ROUNDS).map(|_| turn()).collect::<Result<_, _>>()?;
    let all = |of: fn(&Turn) -> f64| middle(turns.iter().map(of).collect());
    let each = all(|turn| (turn.all_mib - turn.one_mib) / (PANES - 1) as f64);
    let mib = format!("{:.1} → {:.1} MiB", all(|turn| turn.one_mib), all(|turn| turn.all_mib));
    let processes = format!("{} processes", all(|turn| turn.processes as f64));
    let wakeups = all(|turn| turn.wakeups);
    let what = |part: &str| format!("{PANES} idle panes: {part}");
    Ok(vec![
        Row::number(
            what("server memory for each beyond the first (Rss)"),
            each,
            "MiB",
            Bar::AtMost(1.0),
        )
        .saying(mib),
        Row::number(what("wake-ups of all of patterm"), wakeups, "/s", Bar::AtMost(1.0))
            .saying(processes),
        Row::number(what("a spawn"), all(|turn| turn.spawn_ms), "ms", Bar::Less),
    ]
    .into())
}

fn turn() -> anyhow::Result<Turn> {
    let place = Place::new()?;
    let mut tools = place.connect()?;
    let mut spawn = || tools.spawn(&["sleep", "1000000"]);
    spawn()?;
    proc::pause(SETTLE);
    let one_mib = proc::memory_mib(place.server, "Rss:")?;
    let start = Instant::now();
    for _ in 1..PANES {
        spawn()?;
    }
    let spawn_ms = start.elapsed().as_secs_f64() * 1e3 / (PANES - 1) as f64;
    proc::pause(REST);
    let all_mib = proc::memory_mib(place.server, "Rss:")?;
    let pids = proc::patterm_processes(place.folder());
    anyhow::ensure!(pids.len() > PANES, "only {} processes were found", pids.len());
    let seconds = SECONDS[usize::from(long())];
    let before = proc::wakeups(&pids);
    proc::pause(Duration::from_secs(seconds));
    // A thread that is gone had no work.
    let after = proc::wakeups(&pids);
    let woken: u64 =
        after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0)).sum();
    let wakeups = woken as f64 / seconds as f64;
    Ok(Turn { one_mib, all_mib, spawn_ms, wakeups, processes: pids.len() })
}
