//! A row of the tables, and medians.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A measurement, what it is compared with, and its target. The text and the peer identify a row within
/// its family: a row with a new text is a new row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    /// patterm's value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) ours: String,
    /// The peer's name and value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<(String, String)>,
    /// The value compared with the target: a ratio, or a number with its unit. `None` if the peer is
    /// missing.
    pub(crate) value: Option<f64>,
    pub(crate) unit: String,
    #[serde(default, rename = "bar")]
    pub(crate) target: Target,
    /// The value of the committed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<f64>,
}

/// The target of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// No target; less is better.
    Less,
    /// No target; more is better.
    More,
    /// For information only.
    #[default]
    None,
}

/// Whether a row met its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetStatus {
    NoTarget,
    Met,
    Missed,
    NotMeasured,
}

/// A change for the worse by more than this is marked. The margin is wide: the same program on the same
/// machine differs between runs by a tenth in its rates, and by more in its 99th percentile.
pub(crate) const NOISE_PERCENT: f64 = 30.0;

impl Row {
    pub(crate) const HEADER: &str = "| measurement | patterm | compared with | its value | ratio or value | target | | before | change |\n\
         |---|---:|---|---:|---:|---:|---|---:|---|";

    /// The ratio of two values with the same unit, ours to the peer's.
    pub(crate) fn ratio(
        what: impl Into<String>,
        ours: f64,
        (name, peer): (&str, f64),
        unit: &str,
        target: Target,
    ) -> Self {
        Self {
            what: what.into(),
            ours: amount(ours, unit),
            peer: Some((name.to_owned(), amount(peer, unit))),
            value: Some(ours / peer),
            unit: "×".into(),
            target,
            before: None,
        }
    }

    /// The ratio of two times, ours to the peer's.
    pub(crate) fn times(
        what: impl Into<String>,
        ours: Duration,
        (name, peer): (&str, Duration),
        target: Target,
    ) -> Self {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let mut row = Self::ratio(what, micros(ours), (name, micros(peer)), "µs", target);
        (row.ours, row.peer) = (short(ours), Some((name.to_owned(), short(peer))));
        row
    }

    /// A value without a peer.
    pub(crate) fn number(what: impl Into<String>, value: f64, unit: &str, target: Target) -> Self {
        let (what, unit) = (what.into(), unit.into());
        Self { what, value: Some(value), unit, target, ..Self::default() }
    }

    /// Adds details to patterm's value.
    pub(crate) fn with_details(mut self, ours: String) -> Self {
        self.ours = ours;
        self
    }

    /// A row whose peer is not installed: never met.
    pub(crate) fn missing(what: impl Into<String>, peer: &str, target: Target) -> Self {
        let peer = Some((peer.to_owned(), "not installed".to_owned()));
        Self { what: what.into(), peer, unit: "×".into(), target, ..Self::default() }
    }

    /// Whether two rows are the same measurement.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let key = |row: &Self| {
            (row.what.clone(), row.peer.clone().map(|(name, _)| name), row.unit.clone())
        };
        key(self) == key(other)
    }

    pub(crate) fn status(&self) -> TargetStatus {
        match (self.value, self.target) {
            (_, Target::None | Target::Less | Target::More) => TargetStatus::NoTarget,
            (None, _) => TargetStatus::NotMeasured,
            (Some(value), Target::AtMost(target)) if value <= target => TargetStatus::Met,
            (Some(value), Target::AtLeast(target)) if value >= target => TargetStatus::Met,
            (Some(_), _) => TargetStatus::Missed,
        }
    }

    /// The change since the committed run in per cent.
    fn change(&self) -> Option<f64> {
        let (value, before) = self.value.zip(self.before)?;
        (before != 0.0).then(|| (value / before - 1.0) * 100.0)
    }

    /// Whether it got worse since the committed run by more than the noise.
    pub(crate) fn is_worse(&self) -> bool {
        let worse = match self.target {
            Target::AtMost(_) | Target::Less => self.change(),
            // Half the rate is as bad as twice the time.
            Target::AtLeast(_) | Target::More => self
                .value
                .zip(self.before)
                .and_then(|(value, before)| (value != 0.0).then(|| (before / value - 1.0) * 100.0)),
            Target::None => None,
        };
        worse.is_some_and(|worse| worse > NOISE_PERCENT)
    }
}

impl fmt::Display for TargetStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTarget => "",
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
        let target = match self.target {
            Target::AtMost(target) => format!("≤ {target} {unit}"),
            Target::AtLeast(target) => format!("≥ {target} {unit}"),
            Target::Less | Target::More | Target::None => String::new(),
        };
        let before = self.before.map_or(String::new(), |before| amount(before, unit));
        let mark = if self.is_worse() { " **worse**" } else { "" };
        let change = self.change().map_or(String::new(), |change| format!("{change:+.0} %{mark}"));
        let (what, ours, status) = (&self.what, &self.ours, self.status());
        write!(
            f,
            "| {what} | {ours} | {peer} | {theirs} | {value} | {target} | {status} | {before} | \
             {change} |"
        )
    }
}

/// A number with a readable number of digits, and its unit.
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

/// The median of times.
pub(crate) fn median(times: Vec<Duration>) -> Duration {
    quantile(times, 0.5)
}

/// The quantile `part` of the times.
pub(crate) fn quantile(mut times: Vec<Duration>, part: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * part) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The median of numbers.
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
    fn a_row_shows_its_ratio_its_target_and_its_previous_value() {
        let mut row = Row::ratio("cat", 70.0, ("tmux", 35.0), "MB/s", Target::AtLeast(1.8));
        check(&row, "| cat | 70.0 MB/s | tmux | 35.0 MB/s | 2.00 × | ≥ 1.8 × | met |  |  |");
        row.before = Some(2.5);
        check(
            &row,
            "| cat | 70.0 MB/s | tmux | 35.0 MB/s | 2.00 × | ≥ 1.8 × | met | 2.50 × | -20 % |",
        );
        row.before = Some(4.0);
        assert!(row.is_worse() && row.to_string().ends_with("| 4.00 × | -50 % **worse** |"));
        let none = Row::number("idle", 0.0, "/s", Target::AtMost(0.0));
        check(&none, "| idle |  |  |  | 0 /s | ≤ 0 /s | met |  |  |");
        let missing = Row::missing("search", "ripgrep", Target::AtMost(3.0));
        let line = "| search |  | ripgrep | not installed | – | ≤ 3 × | not measured |  |  |";
        check(&missing, line);
    }

    #[test]
    fn worse_means_a_higher_cost_or_a_lower_rate_beyond_the_noise() {
        let at = |target, value, before| {
            let row = Row::number("x", value, "ms", target);
            Row { before: Some(before), ..row }.is_worse()
        };
        assert!(at(Target::Less, 1.4, 1.0) && at(Target::AtMost(9.0), 1.4, 1.0));
        assert!(!at(Target::Less, 1.2, 1.0) && !at(Target::Less, 0.5, 1.0));
        assert!(at(Target::More, 1.0, 1.4) && at(Target::AtLeast(0.1), 1.0, 1.4));
        assert!(!at(Target::More, 1.0, 1.2) && !at(Target::More, 2.0, 1.0));
        assert!(!at(Target::None, 9.0, 1.0) && !at(Target::Less, 0.1, 0.0));
    }
}
