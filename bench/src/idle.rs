//! 500 panes that do nothing: what each costs in memory, and how often anything wakes up.

use std::time::{Duration, Instant};

use crate::row::{Bar, Row};
use crate::session::Place;
use crate::{Measured, long, proc};

const PANES: usize = 500;

/// For how long wake-ups are counted, in the short form and the long one.
const SECONDS: [u64; 2] = [10, 60];

/// Long enough for what a start leaves behind to be done.
const SETTLE: Duration = Duration::from_secs(2);

/// A program that prints nothing is called idle after ten seconds, and its observer sleeps from a
/// second later on.
const REST: Duration = Duration::from_secs(15);

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let place = Place::new()?;
    let mut tools = place.connect()?;
    let mut spawn = || tools.spawn(&["sleep", "1000000"]);
    spawn()?;
    proc::pause(SETTLE);
    let one = proc::memory_mib(place.server, "Rss:")?;
    let start = Instant::now();
    for _ in 1..PANES {
        spawn()?;
    }
    let each = start.elapsed().as_secs_f64() / (PANES - 1) as f64;
    proc::pause(REST);
    let all = proc::memory_mib(place.server, "Rss:")?;
    let pids = proc::patterm_processes(place.folder());
    anyhow::ensure!(pids.len() > PANES, "only {} processes were found", pids.len());
    let seconds = SECONDS[usize::from(long())];
    let before = proc::wakeups(&pids);
    proc::pause(Duration::from_secs(seconds));
    // A thread that is gone had no work.
    let after = proc::wakeups(&pids);
    let woken: u64 =
        after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0)).sum();
    let woken = woken as f64 / seconds as f64;
    let memory = (all - one) / (PANES - 1) as f64;
    let (mib, count) = (format!("{one:.1} → {all:.1} MiB"), format!("{} processes", pids.len()));
    let what = |part: &str| format!("{PANES} idle panes: {part}");
    let memory = Row::number(what("server memory for each (Rss)"), memory, "MiB", Bar::AtMost(1.0));
    let wakeups = Row::number(what("wake-ups of all of patterm"), woken, "/s", Bar::AtMost(1.0));
    let spawn = Row::number(what("a spawn"), each * 1e3, "ms", Bar::Less);
    Ok(vec![memory.saying(mib), wakeups.saying(count), spawn].into())
}
