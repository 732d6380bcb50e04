//! 200 panes that all print as fast as they can: how long a look at a screen takes, whether each
//! pane gets its share, and what the server's memory comes to.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::gate::Gate;
use crate::proc;
use crate::row::{Bar, Row, middle, quantile};
use crate::session::{Place, Tools};
use crate::{Measured, long, text};

const PANES: usize = 200;

/// The flood, in the short form and the long one.
const SECONDS: [u64; 2] = [8, 60];

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Turns, each with a server of its own.
const ROUNDS: usize = 3;

/// Output of each pane kept on disk: the disk is not what is measured.
const LOG_BYTES: u64 = 4 << 20;

/// Bytes printed over and over: enough that a screen never looks the same.
const TEXT_BYTES: usize = 1 << 20;

/// What the server keeps of what scrolled off all screens, unless it is told otherwise. When twice as
/// much was printed there is no more room in it.
const HISTORY_BYTES: u64 = 96 << 20;

/// How long a slow machine may take to print so much.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a turn came to.
struct Turn {
    looks: Vec<Duration>,
    /// Bytes printed by each pane.
    printed: Vec<f64>,
    seconds: f64,
    /// Memory of the server: the most that it had, and what of it is in no file, at the end.
    most_mib: f64,
    anonymous_mib: f64,
}

/// A part of what a turn came to.
type Part = fn(&Turn) -> f64;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let turns: Vec<Turn> = (0..ROUNDS).map(|_| turn()).collect::<Result<_, _>>()?;
    let all = |of: Part| turns.iter().map(of);
    let median = |of: Part| middle(all(of).collect());
    let most = |of: Part| all(of).fold(0.0, f64::max);
    let least = |of: Part| all(of).fold(f64::INFINITY, f64::min);
    let what = format!("{PANES} floods for {} s", SECONDS[usize::from(long())]);
    let row = |part: &str, value: f64, unit: &str, bar| {
        Row::number(format!("{what}: {part}"), value, unit, bar)
    };
    let looks = format!("{:.0} looks in a turn", median(|turn| turn.looks.len() as f64));
    let rate = format!("{:.1} MB/s in all", median(|turn| turn.sum() / turn.seconds / 1e6));
    let memory = format!("{:.0} MiB without files", median(|turn| turn.anonymous_mib));
    Ok(vec![
        row("screen read, median", median(|turn| turn.look(0.5)), "ms", Bar::Less),
        row("screen read, p99", median(|turn| turn.look(0.99)), "ms", Bar::AtMost(25.0))
            .saying(looks),
        row(
            "screen read, longest of all turns",
            most(|turn| turn.look(1.0)),
            "ms",
            Bar::AtMost(150.0),
        ),
        row("slowest pane of all turns to the mean", least(Turn::share), "×", Bar::AtLeast(0.25))
            .saying(rate),
        row(
            "full history, server memory, most (Rss)",
            most(|turn| turn.most_mib),
            "MiB",
            Bar::AtMost(300.0),
        )
        .saying(memory),
    ]
    .into())
}

fn turn() -> anyhow::Result<Turn> {
    let place = Place::with_log_bytes(LOG_BYTES)?;
    let file = place.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    let mut gate = Gate::new(&place)?;
    let line = format!("{}; while :; do cat {}; done", gate.wait(), file.display());
    let mut tools = place.connect()?;
    let ids: Vec<String> =
        (0..PANES).map(|_| tools.spawn(&["sh", "-c", &line])).collect::<Result<_, _>>()?;
    gate.open()?;
    let before = offsets(&mut tools, &ids)?;
    let flood = Duration::from_secs(SECONDS[usize::from(long())]);
    let (start, mut looks) = (Instant::now(), Vec::new());
    for id in ids.iter().cycle() {
        if start.elapsed() > flood {
            break;
        }
        let began = Instant::now();
        let screen = tools.call("get_process_output", &json!({"process_id": id}))?;
        looks.push(began.elapsed());
        anyhow::ensure!(screen["rows"].is_array(), "{screen}");
        proc::pause(PAUSE);
    }
    let after = offsets(&mut tools, &ids)?;
    let seconds = start.elapsed().as_secs_f64();
    let printed = after.iter().zip(&before).map(|(after, before)| (after - before) as f64);
    let printed = printed.collect();
    while offsets(&mut tools, &ids)?.iter().sum::<u64>() < 2 * HISTORY_BYTES {
        anyhow::ensure!(start.elapsed() < PATIENCE, "the history is not full after {PATIENCE:?}");
        proc::pause(Duration::from_millis(100));
    }
    Ok(Turn {
        looks,
        printed,
        seconds,
        most_mib: proc::most_memory_mib(place.server)?,
        anonymous_mib: proc::memory_mib(place.server, "Anonymous:")?,
    })
}

impl Turn {
    /// The time in ms that so many of the looks did not exceed.
    fn look(&self, part: f64) -> f64 {
        quantile(self.looks.clone(), part).as_secs_f64() * 1e3
    }

    fn sum(&self) -> f64 {
        self.printed.iter().sum()
    }

    /// What the slowest pane got, as part of the mean.
    fn share(&self) -> f64 {
        let least = self.printed.iter().copied().fold(f64::INFINITY, f64::min);
        least / (self.sum() / self.printed.len() as f64)
    }
}

fn offsets(tools: &mut Tools, ids: &[String]) -> anyhow::Result<Vec<u64>> {
    ids.iter().map(|id| tools.output_offset(id)).collect()
}
