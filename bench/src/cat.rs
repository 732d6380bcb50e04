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

const KEEPERS: [Keeper; 4] = [Keeper::Patterm, Keeper::Dtach, Keeper::Tmux, Keeper::Screen];

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let place = Place::new()?;
    let run = Cat::new(&place, BYTES)?;
    let keepers = KEEPERS.map(|keeper| (keeper, keeper.is_installed()));
    let mut taken = KEEPERS.map(|_| (Vec::new(), Vec::new()));
    for round in 0..ROUNDS {
        for ((keeper, installed), (rates, times)) in keepers.iter().zip(&mut taken) {
            if *installed {
                let (rate, cpu) = run.once(*keeper, |_, _| Ok(()))?;
                if round > 0 {
                    rates.push(rate);
                    times.push(cpu.as_secs_f64());
                }
            }
        }
    }
    let [(our_rates, our_times), others @ ..] = taken;
    let (ours, our_time) = (middle(our_rates), middle(our_times));
    let mut bars = vec![(Keeper::Patterm.name().to_owned(), ours)];
    let wanted = [Bar::AtLeast(0.8), Bar::AtLeast(1.8), Bar::More];
    let mut rows = Vec::new();
    for ((keeper, (rates, times)), bar) in KEEPERS[1..].iter().zip(others).zip(wanted) {
        let what = "cat of 100 MB, detached: throughput";
        if rates.is_empty() {
            rows.push(Row::missing(what, keeper.name(), bar));
            continue;
        }
        let (rate, time) = (middle(rates), middle(times));
        bars.push((keeper.name().to_owned(), rate));
        rows.push(Row::ratio(what, ours, (keeper.name(), rate), "MB/s", bar));
        let what = "the same: processor time of the server";
        rows.push(Row::ratio(what, our_time, (keeper.name(), time), "s", Bar::Less));
    }
    let groups = vec![Group { name: String::new(), bars }];
    let title = "100 MB printed in a terminal that nobody looks at";
    let charts = vec![Chart::bars("cat", title, Axis::linear("MB/s"), groups)];
    Ok(Measured { rows, charts })
}

/// The same with a client on a terminal that is read as fast as it draws.
pub(crate) fn measure_attached() -> anyhow::Result<Measured> {
    let what = "cat of 100 MB, shown: throughput";
    let bar = Bar::AtLeast(1.5);
    if !Keeper::Tmux.is_installed() {
        return Ok(vec![Row::missing(what, Keeper::Tmux.name(), bar)].into());
    }
    let place = Place::new()?;
    let run = Cat::new(&place, BYTES)?;
    let mut taken = [(); 2].map(|()| (Vec::new(), Vec::new()));
    for round in 0..ROUNDS {
        for (keeper, (rates, times)) in [Keeper::Patterm, Keeper::Tmux].iter().zip(&mut taken) {
            let (rate, cpu) = run.once_with(*keeper, Audience::One, |_, _| Ok(()))?;
            if round > 0 {
                rates.push(rate);
                times.push(cpu.as_secs_f64());
            }
        }
    }
    let [(ours, our_time), (tmux, tmux_time)] =
        taken.map(|(rates, times)| (middle(rates), middle(times)));
    let cpu = "the same: processor time of client and server";
    Ok(vec![
        Row::ratio(what, ours, ("tmux", tmux), "MB/s", bar),
        Row::ratio(cpu, our_time, ("tmux", tmux_time), "s", Bar::Less),
    ]
    .into())
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
        let counted: Vec<u32> =
            [running.server].into_iter().chain(viewer.iter().map(|viewer| viewer.pid)).collect();
        let before = cpu(&counted)?;
        // Opening waits until the program in the terminal has opened its end.
        std::fs::write(&self.go, "x\n")?;
        let start = Instant::now();
        std::fs::read(&self.done)?;
        let rate = self.bytes / 1e6 / start.elapsed().as_secs_f64();
        let cpu = idle_cpu(&counted)?.saturating_sub(before);
        drop(viewer);
        std::fs::write(&self.go, "x\n")?;
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
