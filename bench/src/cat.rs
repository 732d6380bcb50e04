//! `cat` of a large file in a terminal, detached and attached, compared with other multiplexers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Measured;
use crate::chart::{Axis, Chart, Group};
use crate::peers::{Multiplexer, rounds};
use crate::proc;
use crate::row::{Row, Target, amount, middle};
use crate::session::Workspace;
use crate::text::{self, Kind};
use crate::viewer::Viewer;

/// A bar of a chart: its label and its length.
type Bar = (String, f64);

/// Bytes of the file.
pub(crate) const BYTES: usize = 100_000_000;

/// Rounds for each side, after one that warms up the file cache and does not count.
const ROUNDS: usize = 3;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let title = "100 MB printed in a detached terminal";
    let race = Race {
        what: "cat of 100 MB, detached: throughput",
        cost: "the same: CPU time of the server",
        kind: Kind::Mixed,
        cost_target: Target::Less,
        audience: Audience::Nobody,
        peers: &[
            (Multiplexer::Dtach, Target::AtLeast(0.9)),
            (Multiplexer::Tmux, Target::AtLeast(1.8)),
            (Multiplexer::Screen, Target::More),
        ],
    };
    race.run(("cat", title))
}

/// The same for several kinds of output, compared with the bare relay.
pub(crate) fn measure_kinds() -> anyhow::Result<Measured> {
    let plain = Race {
        what: "cat of 100 MB of ASCII: throughput",
        cost: "ASCII: CPU time of the server",
        kind: Kind::Plain,
        cost_target: Target::AtMost(2.0),
        audience: Audience::Nobody,
        peers: &[(Multiplexer::Dtach, Target::AtLeast(0.95))],
    };
    let coloured = Race {
        what: "cat of 100 MB with colours: throughput",
        cost: "colours: CPU time of the server",
        kind: Kind::Coloured,
        cost_target: Target::Less,
        peers: &[(Multiplexer::Dtach, Target::AtLeast(0.9))],
        ..plain
    };
    let unicode = Race {
        what: "cat of 100 MB of Unicode: throughput",
        cost: "Unicode: CPU time of the server",
        kind: Kind::Unicode,
        cost_target: Target::Less,
        peers: &[(Multiplexer::Dtach, Target::AtLeast(0.75))],
        ..plain
    };
    let mut rows = Vec::new();
    for race in [plain, coloured, unicode] {
        rows.extend(race.rows()?.0);
    }
    Ok(rows.into())
}

/// The same with a client attached to a terminal that is read as fast as the client draws.
pub(crate) fn measure_attached() -> anyhow::Result<Measured> {
    let title = "100 MB printed in an attached terminal";
    let race = Race {
        what: "cat of 100 MB, attached: throughput",
        cost: "the same: CPU time of client and server",
        kind: Kind::Mixed,
        cost_target: Target::Less,
        audience: Audience::One,
        peers: &[(Multiplexer::Tmux, Target::AtLeast(3.0)), (Multiplexer::Mprocs, Target::More)],
    };
    race.run(("cat-shown", title))
}

/// patterm and its peers, alternating.
#[derive(Clone, Copy)]
struct Race {
    what: &'static str,
    cost: &'static str,
    kind: Kind,
    cost_target: Target,
    audience: Audience,
    peers: &'static [(Multiplexer, Target)],
}

/// The rounds of one of them.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    seconds: Vec<f64>,
}

impl Race {
    fn run(&self, (name, title): (&str, &str)) -> anyhow::Result<Measured> {
        let (rows, bars) = self.rows()?;
        let groups = vec![Group { name: String::new(), bars }];
        let charts = vec![Chart::bars(name, title, Axis::linear("MB/s"), groups)];
        Ok(Measured { rows, charts })
    }

    /// The rows, and the throughput of each.
    fn rows(&self) -> anyhow::Result<(Vec<Row>, Vec<Bar>)> {
        let workspace = Workspace::new()?;
        let cat = Cat::of(&workspace, BYTES, self.kind)?;
        let mut ours = Rounds::default();
        let mut theirs: Vec<_> = self.peers.iter().map(|_| Rounds::default()).collect();
        for round in 0..=rounds(ROUNDS) {
            let peers = self.peers.iter().map(|(multiplexer, _)| *multiplexer).zip(&mut theirs);
            let all = std::iter::once((Multiplexer::Patterm, &mut ours)).chain(peers);
            for (multiplexer, of) in all.filter(|(multiplexer, _)| multiplexer.is_installed()) {
                let (rate, cpu) = cat.once_with(multiplexer, self.audience, |_, _| Ok(()))?;
                if round > 0 {
                    of.rates.push(rate);
                    of.seconds.push(cpu.as_secs_f64());
                }
            }
        }
        let (rate, seconds) = (middle(ours.rates), middle(ours.seconds));
        let mut rows = Vec::new();
        let mut bars = vec![(Multiplexer::Patterm.name().to_owned(), rate)];
        for ((multiplexer, target), rounds) in self.peers.iter().zip(theirs) {
            if rounds.rates.is_empty() {
                let row = Row::missing(self.what, multiplexer.name(), *target);
                rows.push(row.with_details(amount(rate, "MB/s")));
                let row = Row::missing(self.cost, multiplexer.name(), self.cost_target);
                rows.push(row.with_details(amount(seconds, "s")));
                continue;
            }
            let theirs = (multiplexer.name(), middle(rounds.rates));
            bars.push((multiplexer.name().to_owned(), theirs.1));
            rows.push(Row::ratio(self.what, rate, theirs, "MB/s", *target));
            let theirs = (multiplexer.name(), middle(rounds.seconds));
            rows.push(Row::ratio(self.cost, seconds, theirs, "s", self.cost_target));
        }
        Ok((rows, bars))
    }
}

/// Whether a client is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Nobody,
    One,
}

/// A file that is printed repeatedly.
pub(crate) struct Cat<'a> {
    workspace: &'a Workspace,
    bytes: f64,
    file: PathBuf,
    go: PathBuf,
    done: PathBuf,
}

impl<'a> Cat<'a> {
    pub(crate) fn new(workspace: &'a Workspace, bytes: usize) -> anyhow::Result<Self> {
        Self::of(workspace, bytes, Kind::Mixed)
    }

    fn of(workspace: &'a Workspace, bytes: usize, kind: Kind) -> anyhow::Result<Self> {
        let [file, go, done] = ["text", "go", "done"].map(|name| workspace.folder().join(name));
        text::write_kind(&file, bytes, kind)?;
        for pipe in [&go, &done] {
            let made = workspace.command(Path::new("mkfifo")).arg(pipe).status()?;
            anyhow::ensure!(made.success(), "mkfifo: {made}");
        }
        let bytes = std::fs::metadata(&file)?.len() as f64;
        Ok(Self { workspace, bytes, file, go, done })
    }

    /// Calls `prepare`, then prints the file once. Returns MB/s as the program sees it, and the CPU time of
    /// server and client until they are idle again.
    pub(crate) fn once(
        &self,
        multiplexer: Multiplexer,
        prepare: impl FnOnce(&mut crate::session::Tools, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<(f64, Duration)> {
        self.once_with(multiplexer, Audience::Nobody, prepare)
    }

    fn once_with(
        &self,
        multiplexer: Multiplexer,
        audience: Audience,
        prepare: impl FnOnce(&mut crate::session::Tools, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<(f64, Duration)> {
        let Self { workspace, file, go, done, .. } = self;
        let (file, go, done) = (file.display(), go.display(), done.display());
        let line = format!("read x < {go}; cat {file}; echo x > {done}; read x < {go}");
        let mut running = multiplexer.run(workspace, &line)?;
        if let Some((tools, id)) = running.pane() {
            prepare(tools, id)?;
        }
        let client = running.client(workspace).filter(|_| audience == Audience::One);
        let viewer = client.map(|line| Viewer::start(workspace, &line)).transpose()?;
        let shown = viewer.iter().map(|viewer| viewer.pid);
        let counted: Vec<u32> = running.server.into_iter().chain(shown).collect();
        let before = cpu(&counted)?;
        // Opening waits until the program in the terminal has opened its end.
        std::fs::write(&self.go, "x\n")?;
        let start = Instant::now();
        std::fs::read(&self.done)?;
        let rate = self.bytes / 1e6 / start.elapsed().as_secs_f64();
        let cpu = idle_cpu(&counted)?.saturating_sub(before);
        // Before the client ends: with some peers, the program would end too.
        std::fs::write(&self.go, "x\n")?;
        drop(viewer);
        running.end(workspace)?;
        Ok((rate, cpu))
    }
}

fn cpu(pids: &[u32]) -> anyhow::Result<Duration> {
    pids.iter().map(|pid| proc::cpu(*pid)).sum()
}

/// The CPU time of processes once they are idle.
fn idle_cpu(pids: &[u32]) -> anyhow::Result<Duration> {
    let mut last = cpu(pids)?;
    loop {
        // Longer than the kernel's accounting tick.
        proc::pause(Duration::from_millis(50));
        let now = cpu(pids)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}
