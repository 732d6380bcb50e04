//! One line of the table.

use std::fmt;
use std::time::Duration;

/// What was measured, against what, and the bar.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) ours: Duration,
    pub(crate) peer_name: &'static str,
    pub(crate) peer: Duration,
    /// The ratio that is to be reached.
    pub(crate) bar: f64,
}

impl Row {
    pub(crate) const HEADER: &str = "| what | patterm | peer | | ratio | bar | |\n\
        |---|---:|---|---:|---:|---:|---|";

    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.peer.as_secs_f64()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.ratio() <= self.bar { "met" } else { "missed" };
        write!(
            f,
            "| {} | {} | {} | {} | {:.2} × | ≤ {:.1} × | {verdict} |",
            self.what,
            micros(self.ours),
            self.peer_name,
            micros(self.peer),
            self.ratio(),
            self.bar,
        )
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// The middle of some times.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
