//! What things cost as there is more of them: each quantity at three sizes, ten times as many each
//! time. What is judged is the exponent: 0 where the cost stays the same, 1 where it grows with the
//! number, 2 where it grows with its square.

mod clients;
mod output;
mod pads;
mod panes;
mod timers;
mod waiters;

use std::time::{Duration, Instant};

use crate::chart::{Axis, Chart, Series};
use crate::row::{Bar, Row, median};
use crate::{Measured, proc};

/// What was measured at each of the three sizes.
struct Growth {
    what: String,
    unit: &'static str,
    /// What is judged.
    costs: Vec<f64>,
    /// How long it took, where that is not what is judged: a busy machine makes it longer.
    walls: Vec<f64>,
    bar: Bar,
    /// Why it grows, where it does.
    why: &'static str,
}

/// What one operation took, in milliseconds: on the clock, and of the server's processor time.
struct Cost {
    wall: f64,
    cpu: f64,
}

/// One operation should cost the same however many there are; noise may look like a little more.
const SAME: Bar = Bar::AtMost(0.3);

/// What handles all of them costs as much as there are, and never more; but the processor's caches hold
/// the smaller sizes and not the largest.
const LINEAR: Bar = Bar::AtMost(1.2);

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let families = [
        output::measure,
        panes::measure,
        waiters::measure,
        timers::measure,
        pads::measure,
        pads::measure_size,
        clients::measure,
    ];
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for family in families {
        let growths = family()?;
        rows.extend(growths.iter().map(Growth::row));
        series.extend(growths.first().and_then(Growth::series));
    }
    let axes = (Axis::log("times as many"), Axis::log("times the cost"));
    let title = "What it costs as there are ten and a hundred times as many";
    Ok(Measured { rows, charts: vec![Chart::lines("growth", title, axes, series)] })
}

impl Growth {
    /// A number, judged as it is.
    fn new(what: impl Into<String>, unit: &'static str, bar: Bar) -> Self {
        let what = format!("growth: {}", what.into());
        Self { what, unit, costs: Vec::new(), walls: Vec::new(), bar, why: "" }
    }

    /// An operation, judged by its processor time.
    fn of(what: impl Into<String>, bar: Bar) -> Self {
        Self::new(what, "ms", bar)
    }

    fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    fn push(&mut self, cost: &Cost) {
        self.costs.push(cost.cpu);
        self.walls.push(cost.wall);
    }

    /// Its costs against the first of them.
    fn series(&self) -> Option<Series> {
        let [least, middle, most] = self.costs[..] else { return None };
        let points = vec![(1.0, 1.0), (10.0, middle / least), (100.0, most / least)];
        let name = self.what.trim_start_matches("growth: ").to_owned();
        Some(Series { name, points })
    }

    /// The exponent of the last tenfold, which no fixed cost hides, with the costs and both ratios.
    fn row(&self) -> Row {
        let Self { what, unit, costs, walls, bar, why } = self;
        let [least, middle, most] = costs[..] else { return Row::missing(what, "sizes", *bar) };
        let shown =
            |costs: &[f64]| costs.iter().map(|c| digits(*c)).collect::<Vec<_>>().join(" → ");
        let mut row = Row::number(what, (most / middle).log10(), "exponent", *bar);
        let ratios = format!("×{:.1}, ×{:.1}", middle / least, most / middle);
        row.ours = match walls.is_empty() {
            true => format!("{} {unit} ({ratios})", shown(costs)),
            false => format!("processor {} ms ({ratios}), clock {} ms", shown(costs), shown(walls)),
        };
        if !why.is_empty() {
            row.ours += &format!("; {why}");
        }
        row
    }
}

/// Three digits that say something.
fn digits(number: f64) -> String {
    match number {
        0.0..1.0 => format!("{number:.3}"),
        1.0..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// What doing something so often took each time: the middle time, and the mean processor time of some
/// processes.
fn cost(
    pids: &[u32],
    rounds: usize,
    mut operation: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Cost> {
    let cpu = || pids.iter().map(|pid| proc::cpu_precisely(*pid)).sum::<Duration>();
    let (mut times, before) = (Vec::new(), cpu());
    for round in 0..rounds {
        let start = Instant::now();
        operation(round)?;
        times.push(start.elapsed());
    }
    // A thread that ended meanwhile has taken its time along.
    let cpu = cpu().saturating_sub(before) / u32::try_from(rounds)?;
    Ok(Cost { wall: milliseconds(median(times)), cpu: milliseconds(cpu) })
}

/// Waits until a server has nothing more to do of what was asked for.
fn settle(server: u32) {
    let mut before = proc::cpu_precisely(server);
    loop {
        proc::pause(Duration::from_millis(200));
        let now = proc::cpu_precisely(server);
        if now.saturating_sub(before) < Duration::from_millis(1) {
            return;
        }
        before = now;
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
