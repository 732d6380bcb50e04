//! Draws charts as SVG: no script, no embedded font, colours for light and dark backgrounds.

use std::fmt::Write as _;

use super::{Axis, Chart, Group, Kind, Scale, Series};
use crate::row::amount;

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 16.0;

/// The title's baseline, and the top of the content.
const TITLE: f64 = 26.0;
const TOP: f64 = 48.0;

/// A row of a bar chart or a legend.
const ROW: f64 = 22.0;

/// Height of the plot area.
const PLOT: f64 = 260.0;

/// Approximate width of a letter; text is not measured.
const LETTER: f64 = 7.0;

/// Blue, orange, green, red, violet, teal, brown, grey: each with its variant for dark backgrounds.
const COLOURS: [(&str, &str); 8] = [
    ("#0969da", "#4493f8"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#3fb950"),
    ("#cf222e", "#ff7b72"),
    ("#8250df", "#bc8cff"),
    ("#1b7c83", "#56d4dd"),
    ("#7d4e00", "#d29922"),
    ("#59636e", "#9198a1"),
];

pub(super) fn draw(chart: &Chart) -> String {
    let (body, height) = match &chart.kind {
        Kind::Bars { axis, groups } => bars(axis, groups),
        Kind::Lines { x, y, series } => lines(x, y, series),
    };
    let title = escape(&chart.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
         width=\"{WIDTH:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n\
         <style>\n{}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{TITLE}\">{title}</text>\n{body}</svg>\n",
        style()
    )
}

fn style() -> String {
    let colours = |of: fn(&(&'static str, &'static str)) -> &'static str| {
        let colours = COLOURS.iter().map(of).enumerate();
        colours.fold(String::new(), |css, (at, colour)| {
            format!("{css}.f{at}{{fill:{colour}}}.s{at}{{stroke:{colour}}}\n")
        })
    };
    format!(
        "text{{font:13px system-ui,sans-serif;fill:#1f2328}}.title{{font-weight:600;\
         font-size:15px}}.group{{font-weight:600}}.end{{text-anchor:end}}\
         .middle{{text-anchor:middle}}\n.paper{{fill:#fff}}.grid{{stroke:#d1d9e0}}\
         .line{{fill:none;stroke-width:2}}\n{}\
         @media (prefers-color-scheme:dark){{\ntext{{fill:#f0f6fc}}.paper{{fill:#151b23}}\
         .grid{{stroke:#3d444d}}\n{}}}\n",
        colours(|(light, _)| light),
        colours(|(_, dark)| dark),
    )
}

/// Horizontal bars below the name of their group.
fn bars(axis: &Axis, groups: &[Group]) -> (String, f64) {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let letters = all().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let left = MARGIN + 12.0 + letters as f64 * LETTER;
    // Leaves room for the number after the longest bar.
    let right = WIDTH - MARGIN - 90.0;
    let range = Range::of(axis.scale, all().map(|(_, value)| *value));
    let mut out = String::new();
    let mut y = TOP;
    for group in groups {
        if !group.name.is_empty() {
            let _ = text(&mut out, "group", MARGIN, y + 14.0, &group.name);
            y += ROW;
        }
        for (name, value) in &group.bars {
            let length = (range.part(*value) * (right - left)).max(1.0);
            let colour = if name == "patterm" { 0 } else { COLOURS.len() - 1 };
            let _ = text(&mut out, "end", left - 8.0, y + 14.0, name);
            let _ = writeln!(
                out,
                "<rect class=\"f{colour}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{length:.1}\" \
                 height=\"{:.1}\" rx=\"2\"/>",
                y + 2.0,
                ROW - 6.0
            );
            let _ = text(&mut out, "", left + length + 6.0, y + 14.0, &amount(*value, ""));
            y += ROW;
        }
        y += ROW / 3.0;
    }
    let _ = text(&mut out, "", left, y + 14.0, &label(axis));
    (out, y + ROW + MARGIN / 2.0)
}

/// Lines in a frame, with their names below.
fn lines(x: &Axis, y: &Axis, series: &[Series]) -> (String, f64) {
    let points = || series.iter().flat_map(|line| &line.points);
    let across = Range::of(x.scale, points().map(|(x, _)| *x));
    let up = Range::of(y.scale, points().map(|(_, y)| *y));
    let (left, right) = (MARGIN + 56.0, WIDTH - MARGIN - 16.0);
    let (top, bottom) = (TOP + ROW, TOP + ROW + PLOT);
    let at_x = |value: f64| left + across.part(value) * (right - left);
    let at_y = |value: f64| bottom - up.part(value) * (bottom - top);
    let mut out = String::new();
    let _ = text(&mut out, "", MARGIN, TOP + 8.0, &label(y));
    for tick in up.ticks() {
        let y = at_y(tick);
        let _ = grid(&mut out, (left, y), (right, y));
        let _ = text(&mut out, "end", left - 6.0, y + 4.0, &number(tick));
    }
    for tick in across.ticks() {
        let x = at_x(tick);
        let _ = grid(&mut out, (x, top), (x, bottom));
        let _ = text(&mut out, "middle", x, bottom + 17.0, &number(tick));
    }
    let _ = text(&mut out, "end", right, bottom + 36.0, &label(x));
    for (at, line) in series.iter().enumerate() {
        let colour = at % COLOURS.len();
        let points: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", at_x(*x), at_y(*y))).collect();
        let _ =
            writeln!(out, "<polyline class=\"line s{colour}\" points=\"{}\"/>", points.join(" "));
        // Draws the points if there are few.
        for point in points.iter().filter(|_| points.len() < 20) {
            let (x, y) = point.split_once(',').unwrap_or_default();
            let _ = writeln!(out, "<circle class=\"f{colour}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>");
        }
    }
    let (mut x, mut y) = (left, bottom + 36.0 + ROW);
    for (at, line) in series.iter().enumerate() {
        let width = 34.0 + line.name.chars().count() as f64 * LETTER;
        if x > left && x + width > right {
            (x, y) = (left, y + ROW);
        }
        let colour = at % COLOURS.len();
        let _ = writeln!(
            out,
            "<rect class=\"f{colour}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" rx=\"2\"/>",
            y - 11.0
        );
        let _ = text(&mut out, "", x + 18.0, y, &line.name);
        x += width;
    }
    (out, y + MARGIN)
}

fn text(out: &mut String, class: &str, x: f64, y: f64, words: &str) -> std::fmt::Result {
    let words = escape(words);
    writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>")
}

fn grid(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> std::fmt::Result {
    writeln!(
        out,
        "<line class=\"grid\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    )
}

fn label(axis: &Axis) -> String {
    match axis.scale {
        Scale::Linear => axis.label.clone(),
        Scale::Log => format!("{} (logarithmic)", axis.label),
    }
}

/// Formats round numbers without decimals.
fn number(value: f64) -> String {
    match value.abs() {
        big if big >= 1e6 => format!("{}M", value / 1e6),
        big if big >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{value}"),
    }
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The range of an axis; in powers of ten if it is logarithmic.
struct Range {
    scale: Scale,
    from: f64,
    to: f64,
}

impl Range {
    fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| scale == Scale::Linear || *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            _ if high <= 0.0 => Self { scale, from: 0.0, to: 1.0 },
            Scale::Linear => Self { scale, from: 0.0, to: high },
            Scale::Log => {
                let from = low.log10().floor();
                Self { scale, from, to: high.log10().ceil().max(from + 1.0) }
            }
        }
    }

    /// The position of a value: 0 at the start, 1 at the end.
    fn part(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => value.log10(),
            Scale::Log => self.from,
        };
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Four to ten round numbers, or powers of ten.
    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Log {
            return (self.from as i32..=self.to as i32).map(|ten| 10f64.powi(ten)).collect();
        }
        let ten = 10f64.powf(self.to.log10().floor());
        let step = [0.2, 0.5, 1.0, 2.0].map(|step| step * ten);
        let step = step.into_iter().find(|step| self.to / step <= 8.0).unwrap_or(ten);
        // Multiples of a step, so that no rounding errors add up.
        (0..=(self.to / step) as i32).map(|at| super::round(f64::from(at) * step)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(svg: &str, tag: &str) -> usize {
        svg.matches(tag).count()
    }

    #[test]
    fn bars_are_proportional_and_patterms_is_highlighted() {
        let bars = vec![("patterm".to_owned(), 80.0), ("a < b".to_owned(), 40.0)];
        let groups = vec![Group { name: "detached".into(), bars }];
        let svg = Chart::bars("x", "R & D", Axis::linear("MB/s"), groups).svg();
        let widths: Vec<f64> = svg
            .split("<rect class=\"f")
            .skip(1)
            .map(|rect| rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap())
            .map(|width| width.parse().unwrap())
            .collect();
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.01, "{widths:?}");
        assert!(svg.contains("R &amp; D") && svg.contains("a &lt; b"));
        assert_eq!((count(&svg, "class=\"f0\""), count(&svg, "class=\"f7\"")), (1, 1));
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn lines_have_ticks_at_round_numbers_and_their_names_below() {
        let linear = Range::of(Scale::Linear, [3.0, 58.0].into_iter());
        assert_eq!(linear.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        let log = Range::of(Scale::Log, [0.0, 20.0, 3_000.0].into_iter());
        assert_eq!(log.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!((log.part(0.0), log.part(10.0), log.part(10_000.0)), (0.0, 0.0, 1.0));
        let line =
            |name: &str| Series { name: name.into(), points: vec![(1.0, 2.0), (100.0, 9.0)] };
        let axes = (Axis::log("clients"), Axis::log("calls"));
        let svg = Chart::lines("x", "y", axes, vec![line("one"), line("two")]).svg();
        assert_eq!((count(&svg, "<polyline"), count(&svg, "<circle")), (2, 4));
        assert!(svg.contains(">two</text>") && svg.contains("clients (logarithmic)"));
    }

    #[test]
    fn empty_charts_are_valid() {
        let axes = || (Axis::linear("s"), Axis::log("MiB"));
        for series in [vec![], vec![Series { name: "a".into(), points: vec![(0.0, 0.0)] }]] {
            assert!(!Chart::lines("x", "y", axes(), series).svg().contains("NaN"));
        }
    }
}
