//! Charts as values; `svg.rs` draws them.

mod svg;

use serde::{Deserialize, Serialize};

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chart {
    /// Its file name without extension; unique among all families.
    pub(crate) name: String,
    /// Its title.
    pub(crate) title: String,
    pub(crate) kind: Kind,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Bars in groups; patterm's are highlighted.
    Bars { axis: Axis, groups: Vec<Group> },
    /// Lines through points.
    Lines { x: Axis, y: Axis, series: Vec<Series> },
}

/// Bars that belong together, each with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<(String, f64)>,
}

/// A line, and the points that it goes through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scale {
    /// Starts at zero.
    Linear,
    /// Each step is ten times the last. Shows only values above zero.
    Log,
}

impl Axis {
    pub(crate) fn linear(label: &str) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    pub(crate) fn log(label: &str) -> Self {
        Self { label: label.into(), scale: Scale::Log }
    }
}

impl Chart {
    pub(crate) fn bars(name: &str, title: &str, axis: Axis, groups: Vec<Group>) -> Self {
        Self { name: name.into(), title: title.into(), kind: Kind::Bars { axis, groups } }
    }

    pub(crate) fn lines(
        name: &str,
        title: &str,
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Self {
        Self { name: name.into(), title: title.into(), kind: Kind::Lines { x, y, series } }
    }

    /// The chart as SVG.
    pub(crate) fn svg(&self) -> String {
        svg::draw(self)
    }

    /// Rounds to significant digits, so that the record stays readable.
    pub(crate) fn round(&mut self) {
        match &mut self.kind {
            Kind::Bars { groups, .. } => {
                let bars = groups.iter_mut().flat_map(|group| &mut group.bars);
                bars.for_each(|(_, value)| *value = round(*value));
            }
            Kind::Lines { series, .. } => {
                let points = series.iter_mut().flat_map(|line| &mut line.points);
                points.for_each(|(x, y)| (*x, *y) = (round(*x), round(*y)));
            }
        }
    }
}

/// Rounds to four significant digits.
pub(crate) fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
