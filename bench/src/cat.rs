//! `cat` of a large file in a terminal, with nobody and with somebody looking, against other programs
//! that keep one.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Measured;
use crate::chart::{Axis, Chart, Group};
use crate::peers::Keeper;
use crate::proc;
use crate::row::{Bar, Row, middle};
use crate::session::Place;
use crate::text;
use crate::viewer::Viewer;

/// Bytes of the file.
pub(crate) const BYTES: usize = 100_000_000;

/// Turns taken by each side; the first, which warms the file up, does not count.
const ROUNDS: usize = 4;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let title = "100 MB printed in a terminal that nobody looks at";
    let race = Race {
        what: "cat of 100 MB, detached: throughput",
        cost: "the same: processor time of the server",
        audience: Audience::Nobody,
        peers: &[
            (Keeper::Dtach, Bar::AtLeast(0.8)),
            (Keeper::Tmux, Bar::AtLeast(1.8)),
            (Keeper::Screen, Bar::More),
        ],
    };
    race.run(("cat", title))
}

/// The same with a client on a terminal that is read as fast as it draws.
pub(crate) fn measure_attached() -> anyhow::Result<Measured> {
    let title = "100 MB printed in a terminal that somebody looks at";
    let race = Race {
        what: "cat of 100 MB, shown: throughput",
        cost: "the same: processor time of client and server",
        audience: Audience::One,
        peers: &[(Keeper::Tmux, Bar::AtLeast(1.5)), (Keeper::Mprocs, Bar::More)],
    };
    race.run(("cat-shown", title))
}

/// Patterm against others, taking turns.
struct Race {
    what: &'static str,
    cost: &'static str,
    audience: Audience,
    peers: &'static [(Keeper, Bar)],
}

/// What the turns of one of them came to.
#[derive(Default)]
struct Turns {
    rates: Vec<f64>,
    seconds: Vec<f64>,
}

impl Race {
    fn run(&self, (name, title): (&str, &str)) -> anyhow::Result<Measured> {
        let place = Place::new()?;
        let cat = Cat::new(&place, BYTES)?;
        let mut ours = Turns::default();
        let mut theirs: Vec<_> = self.peers.iter().map(|_| Turns::default()).collect();
        for round in 0..ROUNDS {
            let peers = self.peers.iter().map(|(keeper, _)| *keeper).zip(&mut theirs);
            let all = std::iter::once((Keeper::Patterm, &mut ours)).chain(peers);
            for (keeper, turns) in all.filter(|(keeper, _)| keeper.is_installed()) {
                let (rate, cpu) = cat.once_with(keeper, self.audience, |_, _| Ok(()))?;
                if round > 0 {
                    turns.rates.push(rate);
                    turns.seconds.push(cpu.as_secs_f64());
                }
            }
        }
        let (rate, seconds) = (middle(ours.rates), middle(ours.seconds));
        let mut rows = Vec::new();
        let mut bars = vec![(Keeper::Patterm.name().to_owned(), rate)];
        for ((keeper, bar), turns) in self.peers.iter().zip(theirs) {
            if turns.rates.is_empty() {
                rows.push(Row::missing(self.what, keeper.name(), *bar));
                continue;
            }
            let theirs = (keeper.name(), middle(turns.rates));
            bars.push((keeper.name().to_owned(), theirs.1));
            rows.push(Row::ratio(self.what, rate, theirs, "MB/s", *bar));
            let theirs = (keeper.name(), middle(turns.seconds));
            rows.push(Row::ratio(self.cost, seconds, theirs, "s", Bar::Less));
        }
        let groups = vec![Group { name: String::new(), bars }];
        let charts = vec![Chart::bars(name, title, Axis::linear("MB/s"), groups)];
        Ok(Measured { rows, charts })
    }
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Nobody,
    One,
}

/// A file that is printed again and again.
pub(crate) struct Cat<'a> {
    place: &'a Place,
    bytes: f64,
    file: PathBuf,
    go: PathBuf,
    done: PathBuf,
}

impl<'a> Cat<'a> {
    pub(crate) fn new(place: &'a Place, bytes: usize) -> anyhow::Result<Self> {
        let [file, go, done] = ["text", "go", "done"].map(|name| place.folder().join(name));
        text::write(&file, bytes)?;
        for pipe in [&go, &done] {
            let made = place.command(Path::new("mkfifo")).arg(pipe).status()?;
            anyhow::ensure!(made.success(), "mkfifo: {made}");
        }
        let bytes = std::fs::metadata(&file)?.len() as f64;
        Ok(Self { place, bytes, file, go, done })
    }

    /// Prints the file once, `prepare` being called before; MB/s as the program sees it, and the
    /// processor time of server and client until they are idle again.
    pub(crate) fn once(
        &self,
        keeper: Keeper,
        prepare: impl FnOnce(&mut crate::session::Tools, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<(f64, Duration)> {
        self.once_with(keeper, Audience::Nobody, prepare)
    }

    fn once_with(
        &self,
        keeper: Keeper,
        audience: Audience,
        prepare: impl FnOnce(&mut crate::session::Tools, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<(f64, Duration)> {
        let Self { place, file, go, done, .. } = self;
        let (file, go, done) = (file.display(), go.display(), done.display());
        let line = format!("read x < {go}; cat {file}; echo x > {done}; read x < {go}");
        let mut running = keeper.run(place, &line)?;
        if let Some((tools, id)) = running.pane() {
            prepare(tools, id)?;
        }
        let client = running.client(place).filter(|_| audience == Audience::One);
        let viewer = client.map(|line| Viewer::start(place, &line)).transpose()?;
        let shown = viewer.iter().map(|viewer| viewer.pid);
        let counted: Vec<u32> = running.server.into_iter().chain(shown).collect();
        let before = cpu(&counted)?;
        // Opening waits until the program in the terminal has opened its end.
        std::fs::write(&self.go, "x\n")?;
        let start = Instant::now();
        std::fs::read(&self.done)?;
        let rate = self.bytes / 1e6 / start.elapsed().as_secs_f64();
        let cpu = idle_cpu(&counted)?.saturating_sub(before);
        // Before the one that looks goes: with some, the program would go, too.
        std::fs::write(&self.go, "x\n")?;
        drop(viewer);
        running.end(place)?;
        Ok((rate, cpu))
    }
}

fn cpu(pids: &[u32]) -> anyhow::Result<Duration> {
    pids.iter().map(|pid| proc::cpu(*pid)).sum()
}

/// The processor time of some processes once they do nothing more.
fn idle_cpu(pids: &[u32]) -> anyhow::Result<Duration> {
    let mut last = cpu(pids)?;
    loop {
        // Longer than the tick in which time is counted.
        proc::pause(Duration::from_millis(50));
        let now = cpu(pids)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}
