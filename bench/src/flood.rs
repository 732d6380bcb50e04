//! 200 panes that print as fast as they can: how long reading a screen takes, whether each pane gets its
//! share, and how much memory the server needs.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::gate::Gate;
use crate::proc;
use crate::row::{Row, Target, middle, quantile};
use crate::session::{Tools, Workspace};
use crate::{Measured, long, text};

const PANES: usize = 200;

/// Duration of the flood, in the short and the long form.
const SECONDS: [u64; 2] = [8, 60];

/// Between two reads.
const PAUSE: Duration = Duration::from_millis(2);

/// Rounds, each with its own server.
const ROUNDS: usize = 3;

/// Output of each pane kept on disk: the disk is not what is measured.
const LOG_BYTES: u64 = 4 << 20;

/// Bytes printed repeatedly: enough that a screen never shows the same twice.
const TEXT_BYTES: usize = 1 << 20;

/// The default history budget of the server. It is full once twice as much was printed.
const HISTORY_BYTES: u64 = 96 << 20;

/// Longest wait until the history is full.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The results of a round.
struct Round {
    reads: Vec<Duration>,
    /// Bytes printed by each pane.
    printed: Vec<f64>,
    seconds: f64,
    /// Memory of the server: the peak, and the anonymous part at the end.
    most_mib: f64,
    anonymous_mib: f64,
}

/// One result of a round.
type Part = fn(&Round) -> f64;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let rounds: Vec<Round> = (0..ROUNDS).map(|_| round()).collect::<Result<_, _>>()?;
    let all = |of: Part| rounds.iter().map(of);
    let median = |of: Part| middle(all(of).collect());
    let most = |of: Part| all(of).fold(0.0, f64::max);
    let least = |of: Part| all(of).fold(f64::INFINITY, f64::min);
    let what = format!("{PANES} floods for {} s", SECONDS[usize::from(long())]);
    let row = |part: &str, value: f64, unit: &str, target| {
        Row::number(format!("{what}: {part}"), value, unit, target)
    };
    let reads = format!("{:.0} reads per round", median(|round| round.reads.len() as f64));
    let rate = format!("{:.1} MB/s in total", median(|round| round.sum() / round.seconds / 1e6));
    let memory = format!("{:.0} MiB without files", median(|round| round.anonymous_mib));
    Ok(vec![
        row("screen read, median", median(|round| round.read_time(0.5)), "ms", Target::Less),
        row("screen read, p99", median(|round| round.read_time(0.99)), "ms", Target::AtMost(5.0))
            .with_details(reads),
        row(
            "screen read, longest of all rounds",
            most(|round| round.read_time(1.0)),
            "ms",
            Target::AtMost(100.0),
        ),
        row(
            "slowest pane of all rounds, relative to the mean",
            least(Round::share),
            "×",
            Target::AtLeast(0.5),
        )
        .with_details(rate),
        row(
            "full history, peak server memory (Rss)",
            most(|round| round.most_mib),
            "MiB",
            Target::AtMost(160.0),
        )
        .with_details(memory),
    ]
    .into())
}

fn round() -> anyhow::Result<Round> {
    let workspace = Workspace::with_log_bytes(LOG_BYTES)?;
    let file = workspace.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    let mut gate = Gate::new(&workspace)?;
    let line = format!("{}; while :; do cat {}; done", gate.wait(), file.display());
    let mut tools = workspace.connect()?;
    let ids: Vec<String> =
        (0..PANES).map(|_| tools.spawn(&["sh", "-c", &line])).collect::<Result<_, _>>()?;
    gate.open()?;
    let before = offsets(&mut tools, &ids)?;
    let flood = Duration::from_secs(SECONDS[usize::from(long())]);
    let (start, mut reads) = (Instant::now(), Vec::new());
    for id in ids.iter().cycle() {
        if start.elapsed() > flood {
            break;
        }
        let began = Instant::now();
        let screen = tools.call("get_process_output", &json!({"process_id": id}))?;
        reads.push(began.elapsed());
        anyhow::ensure!(screen["rows"].is_array(), "{screen}");
        proc::pause(PAUSE);
    }
    let after = offsets(&mut tools, &ids)?;
    let seconds = start.elapsed().as_secs_f64();
    let printed = after.iter().zip(&before).map(|(after, before)| (after - before) as f64);
    let printed = printed.collect();
    while offsets(&mut tools, &ids)?.iter().sum::<u64>() < 2 * HISTORY_BYTES {
        anyhow::ensure!(start.elapsed() < TIMEOUT, "the history is not full after {TIMEOUT:?}");
        proc::pause(Duration::from_millis(100));
    }
    Ok(Round {
        reads,
        printed,
        seconds,
        most_mib: proc::most_memory_mib(workspace.server)?,
        anonymous_mib: proc::memory_mib(workspace.server, "Anonymous:")?,
    })
}

impl Round {
    /// A quantile of the reads, in ms.
    fn read_time(&self, part: f64) -> f64 {
        quantile(self.reads.clone(), part).as_secs_f64() * 1e3
    }

    fn sum(&self) -> f64 {
        self.printed.iter().sum()
    }

    /// The output of the slowest pane, relative to the mean.
    fn share(&self) -> f64 {
        let least = self.printed.iter().copied().fold(f64::INFINITY, f64::min);
        least / (self.sum() / self.printed.len() as f64)
    }
}

fn offsets(tools: &mut Tools, ids: &[String]) -> anyhow::Result<Vec<u64>> {
    ids.iter().map(|id| tools.output_offset(id)).collect()
}
