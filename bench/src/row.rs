//! One line of the tables, and the middles that go into it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What was measured, against what, and the bar. What it says and whom it is measured against tell a
/// row from all others of its family: a row that is worded anew is a new row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    /// What patterm took or gave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) ours: String,
    /// Against whom, and what that one took or gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<(String, String)>,
    /// What is judged: a ratio, or a number with its unit. `None` where the peer is missing.
    pub(crate) value: Option<f64>,
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) bar: Bar,
    /// The value of the committed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<f64>,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// No bar; less is better.
    Less,
    /// No bar; more is better.
    More,
    /// Only said.
    #[default]
    None,
}

/// Whether a row reached its bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    NoBar,
    Met,
    Missed,
    NotMeasured,
}

/// A change for the worse is marked from here on. It is wide: the same program on the same machine
/// differs from one run to the next by a tenth in its rates, and by more in its slowest hundredth.
pub(crate) const NOISE_PERCENT: f64 = 30.0;

impl Row {
    pub(crate) const HEADER: &str = "| what | patterm | peer | its | ratio or value | bar | | before | change |\n\
         |---|---:|---|---:|---:|---:|---|---:|---|";

    /// Two amounts of the same unit, ours over the peer's.
    pub(crate) fn ratio(
        what: impl Into<String>,
        ours: f64,
        (name, peer): (&str, f64),
        unit: &str,
        bar: Bar,
    ) -> Self {
        Self {
            what: what.into(),
            ours: amount(ours, unit),
            peer: Some((name.to_owned(), amount(peer, unit))),
            value: Some(ours / peer),
            unit: "×".into(),
            bar,
            before: None,
        }
    }

    /// Two times, ours over the peer's.
    pub(crate) fn times(
        what: impl Into<String>,
        ours: Duration,
        (name, peer): (&str, Duration),
        bar: Bar,
    ) -> Self {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let mut row = Self::ratio(what, micros(ours), (name, micros(peer)), "µs", bar);
        (row.ours, row.peer) = (short(ours), Some((name.to_owned(), short(peer))));
        row
    }

    /// A number of our own, without a peer.
    pub(crate) fn number(what: impl Into<String>, value: f64, unit: &str, bar: Bar) -> Self {
        let (what, unit) = (what.into(), unit.into());
        Self { what, value: Some(value), unit, bar, ..Self::default() }
    }

    /// What else is to be said of what patterm took or gave.
    pub(crate) fn saying(mut self, ours: String) -> Self {
        self.ours = ours;
        self
    }

    /// A row whose peer is not installed: never met.
    pub(crate) fn missing(what: impl Into<String>, peer: &str, bar: Bar) -> Self {
        let peer = Some((peer.to_owned(), "not installed".to_owned()));
        Self { what: what.into(), peer, unit: "×".into(), bar, ..Self::default() }
    }

    /// Whether two rows say the same of the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let key = |row: &Self| {
            (row.what.clone(), row.peer.clone().map(|(name, _)| name), row.unit.clone())
        };
        key(self) == key(other)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (self.value, self.bar) {
            (_, Bar::None | Bar::Less | Bar::More) => Verdict::NoBar,
            (None, _) => Verdict::NotMeasured,
            (Some(value), Bar::AtMost(bar)) if value <= bar => Verdict::Met,
            (Some(value), Bar::AtLeast(bar)) if value >= bar => Verdict::Met,
            (Some(_), _) => Verdict::Missed,
        }
    }

    /// The change since the committed run in per cent.
    fn change(&self) -> Option<f64> {
        let (value, before) = self.value.zip(self.before)?;
        (before != 0.0).then(|| (value / before - 1.0) * 100.0)
    }

    /// Whether it got worse since the committed run by more than noise does.
    pub(crate) fn is_worse(&self) -> bool {
        let worse = match self.bar {
            Bar::AtMost(_) | Bar::Less => self.change(),
            // Half as much is as bad as twice as long.
            Bar::AtLeast(_) | Bar::More => self
                .value
                .zip(self.before)
                .and_then(|(value, before)| (value != 0.0).then(|| (before / value - 1.0) * 100.0)),
            Bar::None => None,
        };
        worse.is_some_and(|worse| worse > NOISE_PERCENT)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBar => "",
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::NotMeasured => "not measured",
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, theirs) = self.peer.clone().unwrap_or_default();
        let unit = &self.unit;
        let value = self.value.map_or("–".to_owned(), |value| amount(value, unit));
        let bar = match self.bar {
            Bar::AtMost(bar) => format!("≤ {bar} {unit}"),
            Bar::AtLeast(bar) => format!("≥ {bar} {unit}"),
            Bar::Less | Bar::More | Bar::None => String::new(),
        };
        let before = self.before.map_or(String::new(), |before| amount(before, unit));
        let mark = if self.is_worse() { " **worse**" } else { "" };
        let change = self.change().map_or(String::new(), |change| format!("{change:+.0} %{mark}"));
        let (what, ours, verdict) = (&self.what, &self.ours, self.verdict());
        write!(
            f,
            "| {what} | {ours} | {peer} | {theirs} | {value} | {bar} | {verdict} | {before} | \
             {change} |"
        )
    }
}

/// A number with so many digits as a reader wants, and its unit.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        small if small < 0.1 => 3,
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

pub(crate) fn short(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros < 10_000.0 {
        true => amount(micros, "µs"),
        false => amount(micros / 1e3, "ms"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &Row, line: &str) {
        assert_eq!(row.to_string(), line);
    }

    #[test]
    fn a_row_says_its_ratio_its_bar_and_what_it_was_before() {
        let mut row = Row::ratio("cat", 70.0, ("tmux", 35.0), "MB/s", Bar::AtLeast(1.8));
        check(&row, "| cat | 70.0 MB/s | tmux | 35.0 MB/s | 2.00 × | ≥ 1.8 × | met |  |  |");
        row.before = Some(2.5);
        check(
            &row,
            "| cat | 70.0 MB/s | tmux | 35.0 MB/s | 2.00 × | ≥ 1.8 × | met | 2.50 × | -20 % |",
        );
        row.before = Some(4.0);
        assert!(row.is_worse() && row.to_string().ends_with("| 4.00 × | -50 % **worse** |"));
        let none = Row::number("at rest", 0.0, "/s", Bar::AtMost(0.0));
        check(&none, "| at rest |  |  |  | 0 /s | ≤ 0 /s | met |  |  |");
        let missing = Row::missing("search", "ripgrep", Bar::AtMost(3.0));
        let line = "| search |  | ripgrep | not installed | – | ≤ 3 × | not measured |  |  |";
        check(&missing, line);
    }

    #[test]
    fn worse_is_more_of_a_cost_and_less_of_a_gain_beyond_the_noise() {
        let at = |bar, value, before| {
            let row = Row::number("x", value, "ms", bar);
            Row { before: Some(before), ..row }.is_worse()
        };
        assert!(at(Bar::Less, 1.4, 1.0) && at(Bar::AtMost(9.0), 1.4, 1.0));
        assert!(!at(Bar::Less, 1.2, 1.0) && !at(Bar::Less, 0.5, 1.0));
        assert!(at(Bar::More, 1.0, 1.4) && at(Bar::AtLeast(0.1), 1.0, 1.4));
        assert!(!at(Bar::More, 1.0, 1.2) && !at(Bar::More, 2.0, 1.0));
        assert!(!at(Bar::None, 9.0, 1.0) && !at(Bar::Less, 0.1, 0.0));
    }
}
