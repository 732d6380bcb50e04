//! Calls of a shared server's tool over HTTP: through patterm, through a bare relay, and through other
//! relays, all in front of the same server and alternating.

mod ceiling;
mod load;
mod relays;
mod sharing;

use std::time::Duration;

use crate::chart::{Axis, Chart, Series};
use crate::peers::rounds;
use crate::row::{Row, Target, middle};
use crate::session::Workspace;
use crate::{Measured, long};
pub(crate) use ceiling::measure as measure_ceiling;
use load::Load;
use relays::{Relay, Relays, Subject};
pub(crate) use sharing::measure as measure_sharing;

/// Concurrent clients, each with one call at a time.
const CLIENTS: [usize; 3] = [1, 8, 64];

/// Rounds for each.
const ROUNDS: usize = 3;

/// Duration of a round, in the short and the long form.
const ROUND: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(10)];

/// The first calls are slower and do not count.
const WARM_UP: Duration = Duration::from_millis(300);

/// Results of a relay with a number of clients.
#[derive(Debug, Default)]
struct Cell {
    rates: Vec<f64>,
    /// Median and 99th percentile, in seconds.
    median: Vec<f64>,
    p99: Vec<f64>,
    /// CPU time per call, without the server's.
    cpu: Vec<f64>,
    /// Including all servers that it started.
    mib: Vec<f64>,
    processes: Vec<f64>,
    /// Why results are missing.
    failure: Option<String>,
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::new()?;
    let relays = Relays::new();
    let mut started: Vec<_> =
        Subject::ALL.map(|subject| relays.start(subject, 1, &workspace)).into();
    let mut cells: Vec<[Cell; 3]> = started.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds(ROUNDS) {
        for (at, clients) in CLIENTS.into_iter().enumerate() {
            for (relay, cells) in started.iter_mut().zip(&mut cells) {
                let time = ROUND[usize::from(long())];
                let round = failed(relay.as_mut())
                    .and_then(|relay| failed(cells[at].round(relay, clients, time)));
                cells[at].failure = cells[at].failure.take().or(round.err());
            }
        }
    }
    let mut rows = Vec::new();
    for (at, clients) in CLIENTS.into_iter().enumerate() {
        let Some((ours, peers)) = cells.split_first() else { break };
        for (subject, peer) in Subject::ALL[1..].iter().zip(peers) {
            rows.push(row(clients, *subject, &ours[at], &peer[at]));
        }
    }
    Ok(Measured { rows, charts: vec![chart(&cells)] })
}

/// A failure as text.
fn failed<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|why| format!("{why:#}"))
}

/// Calls per second by number of clients, one line for each relay.
fn chart(cells: &[[Cell; 3]]) -> Chart {
    let measured = |cells: &&[Cell; 3]| cells.iter().all(|cell| cell.failure.is_none());
    let lines = Subject::ALL.iter().zip(cells).filter(|(_, cells)| measured(cells));
    let series = lines.map(|(subject, cells)| Series {
        name: subject.name().into(),
        points: CLIENTS.iter().zip(cells).map(|(at, cell)| (*at as f64, cell.rate())).collect(),
    });
    let axes = (Axis::log("clients"), Axis::log("calls per second"));
    Chart::lines("gateway", "A shared server's tool over HTTP", axes, series.collect())
}

impl Cell {
    fn round(&mut self, relay: &mut Relay, clients: usize, time: Duration) -> anyhow::Result<()> {
        let mut load = Load::connect(&relay.endpoint, clients)?;
        load.run(WARM_UP)?;
        let before = relay.cpu();
        let mut times = load.run(time)?;
        let cpu = relay.cpu().saturating_sub(before).as_secs_f64();
        let (mib, processes) = relay.memory();
        load.end()?;
        times.sort_unstable();
        let at = |part: f64| {
            let at = (times.len() as f64 * part) as usize;
            times.get(at).map_or(0.0, Duration::as_secs_f64)
        };
        self.rates.push(times.len() as f64 / time.as_secs_f64());
        self.median.push(at(0.5));
        self.p99.push(at(0.99));
        self.cpu.push(cpu / times.len() as f64);
        self.mib.push(mib);
        self.processes.push(processes as f64);
        Ok(())
    }

    fn rate(&self) -> f64 {
        middle(self.rates.clone())
    }

    fn whole(&self) -> String {
        let of = |numbers: &Vec<f64>| middle(numbers.clone());
        if let Some(failure) = &self.failure {
            return format!("not measured: {failure}");
        }
        format!(
            "{:.0}/s; p50 {:.0} µs, p99 {:.0} µs; CPU {:.0} µs; {:.0} MiB, {} processes",
            self.rate(),
            of(&self.median) * 1e6,
            of(&self.p99) * 1e6,
            of(&self.cpu) * 1e6,
            of(&self.mib),
            of(&self.processes),
        )
    }
}

fn row(clients: usize, peer: Subject, ours: &Cell, theirs: &Cell) -> Row {
    let target = match (clients, peer) {
        // Its targets are those of `ceiling`, with more rounds.
        (64, Subject::RustProxy) => Target::AtLeast(3.5),
        (64, Subject::NpmProxy) => Target::AtLeast(15.0),
        _ => Target::More,
    };
    // patterm's details appear once.
    let all = peer == Subject::Bare || ours.failure.is_some();
    let measured = ours.failure.is_none() && theirs.failure.is_none();
    Row {
        what: format!("a shared server's tool over HTTP, {clients} clients"),
        ours: if all { ours.whole() } else { format!("{:.0}/s", ours.rate()) },
        peer: Some((peer.name().to_owned(), theirs.whole())),
        value: measured.then(|| ours.rate() / theirs.rate()),
        unit: "×".into(),
        target,
        before: None,
    }
}
