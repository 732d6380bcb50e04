//! How costs grow: each quantity at three sizes, each ten times the last. The target applies to the
//! exponent: 0 if the cost stays the same, 1 if it grows with the number, 2 if with its square.

mod clients;
mod output;
mod pads;
mod panes;
mod timers;
mod waiters;

use std::time::{Duration, Instant};

use crate::chart::{Axis, Chart, Series};
use crate::row::{Row, Target, median};
use crate::{Measured, proc};

/// Measurements at the three sizes.
struct Growth {
    what: String,
    unit: &'static str,
    /// The values that the target applies to.
    costs: Vec<f64>,
    /// Wall-clock times, for information: a busy machine makes them longer.
    walls: Vec<f64>,
    target: Target,
    /// Why it grows, if it does.
    why: &'static str,
}

/// The cost of one operation in milliseconds: wall clock, and CPU time of the server.
struct Cost {
    wall: f64,
    cpu: f64,
}

/// The cost should not depend on the number; allows for noise.
const SAME: Target = Target::AtMost(0.3);

/// The cost should grow at most linearly; allows for CPU caches that hold only the smaller sizes.
const LINEAR: Target = Target::AtMost(1.2);

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
    let title = "Cost with ten and a hundred times as many";
    Ok(Measured { rows, charts: vec![Chart::lines("growth", title, axes, series)] })
}

impl Growth {
    /// A number.
    fn new(what: impl Into<String>, unit: &'static str, target: Target) -> Self {
        let what = format!("growth: {}", what.into());
        Self { what, unit, costs: Vec::new(), walls: Vec::new(), target, why: "" }
    }

    /// An operation, measured by its CPU time.
    fn of(what: impl Into<String>, target: Target) -> Self {
        Self::new(what, "ms", target)
    }

    fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    fn push(&mut self, cost: &Cost) {
        self.costs.push(cost.cpu);
        self.walls.push(cost.wall);
    }

    /// Its costs relative to the first.
    fn series(&self) -> Option<Series> {
        let [least, middle, most] = self.costs[..] else { return None };
        let points = vec![(1.0, 1.0), (10.0, middle / least), (100.0, most / least)];
        let name = self.what.trim_start_matches("growth: ").to_owned();
        Some(Series { name, points })
    }

    /// The exponent of the last step, where fixed costs matter least, with the costs and both ratios.
    fn row(&self) -> Row {
        let Self { what, unit, costs, walls, target, why } = self;
        let [least, middle, most] = costs[..] else { return Row::missing(what, "sizes", *target) };
        let shown =
            |costs: &[f64]| costs.iter().map(|c| digits(*c)).collect::<Vec<_>>().join(" → ");
        let mut row = Row::number(what, (most / middle).log10(), "exponent", *target);
        let ratios = format!("×{:.1}, ×{:.1}", middle / least, most / middle);
        row.ours = match walls.is_empty() {
            true => format!("{} {unit} ({ratios})", shown(costs)),
            false => format!("CPU {} ms ({ratios}), wall clock {} ms", shown(costs), shown(walls)),
        };
        if !why.is_empty() {
            row.ours += &format!("; {why}");
        }
        row
    }
}

/// Three significant digits.
fn digits(number: f64) -> String {
    match number {
        0.0..1.0 => format!("{number:.3}"),
        1.0..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// The cost of repeating an operation: its median time, and the mean CPU time of some processes.
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
    // The time of a thread that ended meanwhile is lost.
    let cpu = cpu().saturating_sub(before) / u32::try_from(rounds)?;
    Ok(Cost { wall: milliseconds(median(times)), cpu: milliseconds(cpu) })
}

/// Waits until a server is idle.
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
