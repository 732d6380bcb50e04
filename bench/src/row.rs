//! One line of the table.

use std::fmt;
use std::time::Duration;

/// What was measured, against what, and the bar.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) what: String,
    /// What patterm took or gave.
    pub(crate) ours: String,
    /// Against whom, and what that one took or gave.
    pub(crate) peer: Option<(String, String)>,
    /// What is judged: a ratio, or a number with its unit. `None` where the peer is missing.
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Only said.
    #[default]
    None,
}

impl Row {
    pub(crate) const HEADER: &str = "| what | patterm | peer | | value | bar | |\n\
        |---|---:|---|---:|---:|---:|---|";

    /// Two times, ours over the peer's.
    pub(crate) fn times(
        what: &str,
        ours: Duration,
        (name, peer): (&str, Duration),
        bar: f64,
    ) -> Self {
        Self {
            what: what.to_owned(),
            ours: short(ours),
            peer: Some((name.to_owned(), short(peer))),
            value: Some(ours.as_secs_f64() / peer.as_secs_f64()),
            unit: "×",
            bar: Bar::AtMost(bar),
        }
    }

    /// A number of our own, without a peer.
    pub(crate) fn number(
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        bar: Bar,
    ) -> Self {
        let ours = String::new();
        Self { what: what.into(), ours, peer: None, value: Some(value), unit, bar }
    }

    /// A row whose peer is not installed: never met.
    pub(crate) fn missing(what: impl Into<String>, peer: &str, bar: Bar) -> Self {
        let peer = Some((peer.to_owned(), "not installed".to_owned()));
        Self { what: what.into(), ours: String::new(), peer, value: None, unit: "×", bar }
    }

    fn verdict(&self) -> &'static str {
        match (self.value, self.bar) {
            (_, Bar::None) => "",
            (None, _) => "not measured",
            (Some(value), Bar::AtMost(bar)) if value <= bar => "met",
            (Some(value), Bar::AtLeast(bar)) if value >= bar => "met",
            (Some(_), _) => "missed",
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, theirs) = self.peer.clone().unwrap_or_default();
        let value = self.value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        let bar = match self.bar {
            Bar::AtMost(bar) => format!("≤ {bar:.1} {}", self.unit),
            Bar::AtLeast(bar) => format!("≥ {bar:.2} {}", self.unit),
            Bar::None => String::new(),
        };
        let (what, ours, unit, verdict) = (&self.what, &self.ours, self.unit, self.verdict());
        write!(f, "| {what} | {ours} | {peer} | {theirs} | {value} {unit} | {bar} | {verdict} |")
    }
}

pub(crate) fn short(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros < 10_000.0 {
        true => format!("{micros:.1} µs"),
        false => format!("{:.1} ms", micros / 1e3),
    }
}

/// The middle of some times.
pub(crate) fn median(times: Vec<Duration>) -> Duration {
    quantile(times, 0.5)
}

/// The time that `part` of the times do not exceed.
pub(crate) fn quantile(mut times: Vec<Duration>, part: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * part) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The middle of some numbers.
pub(crate) fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
