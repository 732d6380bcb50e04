//! Samples of memory, descriptors and CPU time, and their trends.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::harness::Harness;
use crate::proc;

/// One sample.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    /// The server's memory in MiB: resident, and anonymous.
    pub(super) server_rss: f64,
    pub(super) server_anonymous: f64,
    pub(super) keeper_anonymous: f64,
    /// 0 if no TUI is attached.
    pub(super) tui_anonymous: f64,
    pub(super) server_descriptors: f64,
    pub(super) keeper_descriptors: f64,
    pub(super) server_threads: f64,
    /// Processes of patterm, and all processes started here.
    pub(super) patterm_processes: f64,
    pub(super) processes: f64,
    pub(super) zombies: f64,
    /// Wake-ups of all patterm processes per second.
    pub(super) wakeups: f64,
    /// CPU time of server and keeper so far.
    pub(super) server_cpu: f64,
    pub(super) keeper_cpu: f64,
}

/// A column of the table.
pub(super) type Column = fn(&Sample) -> f64;

const COLUMNS: [(&str, Column); 14] = [
    ("seconds", |s| s.seconds),
    ("server_rss_mib", |s| s.server_rss),
    ("server_anonymous_mib", |s| s.server_anonymous),
    ("keeper_anonymous_mib", |s| s.keeper_anonymous),
    ("tui_anonymous_mib", |s| s.tui_anonymous),
    ("server_descriptors", |s| s.server_descriptors),
    ("keeper_descriptors", |s| s.keeper_descriptors),
    ("server_threads", |s| s.server_threads),
    ("patterm_processes", |s| s.patterm_processes),
    ("processes", |s| s.processes),
    ("zombies", |s| s.zombies),
    ("wakeups_per_second", |s| s.wakeups),
    ("server_cpu_seconds", |s| s.server_cpu),
    ("keeper_cpu_seconds", |s| s.keeper_cpu),
];

/// Takes samples.
pub(super) struct Sampler {
    start: Instant,
    last: (Instant, std::collections::HashMap<PathBuf, u64>),
    keeper: u32,
    pub(super) samples: Vec<Sample>,
}

impl Sampler {
    pub(super) fn new(harness: &Harness) -> anyhow::Result<Self> {
        let start = Instant::now();
        let keeper = proc::keeper(harness.workspace.folder())?;
        let last = (start, proc::wakeups(&proc::patterm_processes(harness.workspace.folder())));
        Ok(Self { start, last, keeper, samples: Vec::new() })
    }

    pub(super) fn look(&mut self, harness: &Harness) -> anyhow::Result<&Sample> {
        let (server, keeper) = (harness.workspace.server, self.keeper);
        let all = proc::processes_in(harness.workspace.folder());
        let ours = proc::patterm_processes(harness.workspace.folder());
        let (now, woken) = (Instant::now(), proc::wakeups(&ours));
        let sum: u64 = woken
            .iter()
            .map(|(thread, count)| count.saturating_sub(*self.last.1.get(thread).unwrap_or(&0)))
            .sum();
        let passed = now.duration_since(self.last.0).as_secs_f64();
        self.last = (now, woken);
        let tui = harness.tui.load(Ordering::Relaxed);
        // The TUI may have ended meanwhile.
        let tui = proc::memory_mib(tui, "Anonymous:").unwrap_or(0.0);
        self.samples.push(Sample {
            seconds: now.duration_since(self.start).as_secs_f64(),
            server_rss: proc::memory_mib(server, "Rss:")?,
            server_anonymous: proc::memory_mib(server, "Anonymous:")?,
            keeper_anonymous: proc::memory_mib(keeper, "Anonymous:")?,
            tui_anonymous: tui,
            server_descriptors: proc::entries(server, "fd"),
            keeper_descriptors: proc::entries(keeper, "fd"),
            server_threads: proc::entries(server, "task"),
            patterm_processes: ours.len() as f64,
            processes: all.len() as f64,
            zombies: proc::zombies_of(&ours) as f64,
            wakeups: sum as f64 / passed,
            server_cpu: proc::cpu(server)?.as_secs_f64(),
            keeper_cpu: proc::cpu(keeper)?.as_secs_f64(),
        });
        Ok(&self.samples[self.samples.len() - 1])
    }

    /// All samples, one line each.
    pub(super) fn table(&self) -> String {
        let mut table = COLUMNS.map(|(name, _)| name).join("\t") + "\n";
        for sample in &self.samples {
            let cells = COLUMNS.map(|(_, of)| format!("{:.2}", of(sample)));
            let _ = writeln!(table, "{}", cells.join("\t"));
        }
        table
    }

    /// Growth of a column per hour: least squares over the last two thirds.
    pub(super) fn slope(&self, of: Column) -> f64 {
        let late = &self.samples[self.samples.len() / 3..];
        let count = late.len() as f64;
        let mean = |of: Column| late.iter().map(of).sum::<f64>() / count;
        let (time, value) = (mean(|s| s.seconds), mean(of));
        let rise: f64 = late.iter().map(|s| (s.seconds - time) * (of(s) - value)).sum();
        let run: f64 = late.iter().map(|s| (s.seconds - time).powi(2)).sum();
        rise / run * 3600.0
    }

    /// The means of a column over the first and the last tenth.
    pub(super) fn ends(&self, of: Column) -> (f64, f64) {
        let tenth = (self.samples.len() / 10).max(1);
        let mean = |part: &[Sample]| part.iter().map(of).sum::<f64>() / part.len() as f64;
        (mean(&self.samples[..tenth]), mean(&self.samples[self.samples.len() - tenth..]))
    }

    pub(super) fn most(&self, of: Column) -> f64 {
        self.samples.iter().map(of).fold(0.0, f64::max)
    }

    pub(super) fn mean(&self, of: Column) -> f64 {
        self.samples.iter().map(of).sum::<f64>() / self.samples.len() as f64
    }
}
