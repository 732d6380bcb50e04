//! The dashboard: all processes in a table over the whole window.

use std::collections::VecDeque;

use patterm_wire::follow::ProcessInfo;

use super::overlay::{above_status, first_shown};
use super::style;
use crate::canvas::{Canvas, Rect, text_width};
use crate::dashboard::{Column, SAMPLES};
use crate::list::{number, one_line};
use crate::model::{Model, is_alive};
use crate::table;

/// From this width on, columns have their full widths.
const WIDE: u16 = 140;

/// The narrowest name that says anything, with its kind.
const NAME_MIN: u16 = 6;

/// The narrowest last line that says anything.
const LAST_LINE_MIN: u16 = 8;

/// The width of sparklines on a narrow window.
const SPARK_MIN: u16 = 5;

/// Rows above the first process: the totals and the headings.
const HEAD: u16 = 2;

/// On a lower window, the row with the details of the chosen process is left out.
const DETAIL_HEIGHT: u16 = 8;

/// The columns other than the name, in the order of their importance: in a narrow window, the last ones are left out.
const IMPORTANCE: [Column; 7] = [
    Column::State,
    Column::Cpu,
    Column::Memory,
    Column::Number,
    Column::Age,
    Column::Ports,
    Column::Restarts,
];

/// What is at a position of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DashboardPlace {
    Heading(Column),
    /// The process with this id.
    Row(String),
}

/// A column and where it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    column: Column,
    x: u16,
    width: u16,
    /// The part of the width that the sparkline has.
    spark: u16,
}

fn width_of(column: Column, is_wide: bool) -> u16 {
    match (column, is_wide) {
        (Column::Number, false) => 2,
        (Column::Number, true) => 3,
        (Column::Name, false) => 12,
        (Column::Name, true) => 24,
        // "✗ unhealthy" and "● not ready".
        (Column::State, false) => 11,
        (Column::State, true) => 18,
        (Column::Cpu | Column::Memory, false) => 4,
        (Column::Cpu | Column::Memory, true) => 6,
        (Column::Age, _) => 5,
        (Column::Restarts, false) => 3,
        (Column::Restarts, true) => 8,
        (Column::Ports, false) => 5,
        (Column::Ports, true) => 17,
        (Column::LastLine, _) => 0,
    }
}

/// The columns that fit, from left to right, with a margin before them and gaps between them.
fn places(width: u16) -> Vec<Place> {
    let is_wide = width >= WIDE;
    // The name is shown in any case, and shortened for the state.
    let beside_state = width.saturating_sub(width_of(Column::State, is_wide) + 2);
    let mut name = width_of(Column::Name, is_wide).min(width.saturating_sub(1));
    if beside_state >= NAME_MIN {
        name = name.min(beside_state);
    }
    let mut left = width.saturating_sub(1 + name);
    let mut shown = vec![Column::Name];
    for column in IMPORTANCE {
        let needed = width_of(column, is_wide) + 1;
        if needed > left {
            break;
        }
        left -= needed;
        shown.push(column);
    }
    let spark = if is_wide { SAMPLES as u16 } else { SPARK_MIN };
    let spark = if left >= 2 * (spark + 1) { spark } else { 0 };
    left -= if spark > 0 { 2 * (spark + 1) } else { 0 };
    let last_line = if left > LAST_LINE_MIN { left - 1 } else { 0 };
    if last_line == 0 {
        name += left;
    }
    let mut x = 1;
    let mut places = Vec::new();
    for column in Column::ALL {
        let has_spark = matches!(column, Column::Cpu | Column::Memory) && spark > 0;
        let width = match column {
            Column::LastLine => last_line,
            Column::Name => name,
            _ if !shown.contains(&column) => 0,
            _ if has_spark => width_of(column, is_wide) + 1 + spark,
            _ => width_of(column, is_wide),
        };
        if width > 0 {
            places.push(Place { column, x, width, spark: if has_spark { spark } else { 0 } });
            x += width + 1;
        }
    }
    places
}

/// The rows with processes.
fn body(model: &Model) -> Rect {
    let body = above_status(model).cut_top(HEAD).1;
    match model.height < DETAIL_HEIGHT {
        true => body,
        false => Rect { height: body.height.saturating_sub(1), ..body },
    }
}

/// What is at a position.
pub(crate) fn place_at(model: &Model, x: u16, y: u16) -> Option<DashboardPlace> {
    let body = body(model);
    if y + 1 == body.y {
        let ends = |place: &&Place| x < place.x + place.width + 1;
        return places(model.width)
            .iter()
            .find(ends)
            .map(|place| DashboardPlace::Heading(place.column));
    }
    if !body.contains(x, y) {
        return None;
    }
    let rows = table::rows(model);
    let first = first_shown(table::chosen(model, &rows), usize::from(body.height), rows.len());
    let process = rows.get(first + usize::from(y - body.y))?;
    Some(DashboardPlace::Row(process.id.clone()))
}

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let area = above_status(model);
    canvas.clear(area, &model.theme().text);
    let title = title(model);
    canvas.put_cut(1, area.y, area.right(), &title, &model.theme().strong);
    let places = places(model.width);
    if area.height > 1 {
        places.iter().for_each(|place| heading(model, place, canvas));
    }
    let (rows, body) = (table::rows(model), body(model));
    let chosen = table::chosen(model, &rows);
    let first = first_shown(chosen, usize::from(body.height), rows.len());
    let shown = rows.iter().enumerate().skip(first).take(usize::from(body.height));
    for (line, (at, process)) in shown.enumerate() {
        let y = body.y + line as u16;
        places.iter().for_each(|place| cell(model, process, place, y, canvas));
        if at == chosen {
            let row = Rect::new(0, y, model.width, 1);
            canvas.restyle(row, |style| style::select(style, &model.theme().selected));
        }
    }
    if let Some(process) = rows.get(chosen).filter(|_| model.height >= DETAIL_HEIGHT) {
        canvas.put_cut(1, body.bottom(), area.right(), &detail(model, process), &model.theme().dim);
    }
}

/// The project and the totals.
fn title(model: &Model) -> String {
    let project = model.snapshot.project.rsplit('/').next().unwrap_or_default();
    let running = model.snapshot.processes.iter().filter(|process| is_alive(process)).count();
    let mut title = format!("dashboard  {project}  {running} running");
    if let Some(problem) = &model.dashboard.problem {
        return format!("{title}  ✗ {}", one_line(problem));
    }
    if model.dashboard.samples.is_empty() {
        return title + "  measuring…";
    }
    let samples = model.dashboard.samples.values();
    let cpu: u32 = samples.clone().filter_map(|samples| samples.cpu_now()).sum();
    let memory: u64 = samples.filter_map(|samples| samples.last.memory_bytes).sum();
    title += &format!("  CPU {cpu}%  memory {}", bytes(memory));
    title
}

fn heading(model: &Model, place: &Place, canvas: &mut Canvas) {
    let is_sorted = model.dashboard.sort == place.column;
    let mark = match (is_sorted, model.dashboard.descending) {
        (false, _) => "",
        (true, true) => "▼",
        (true, false) => "▲",
    };
    let style = if is_sorted { &model.theme().accent } else { &model.theme().dim };
    let word = place.column.heading(model.width >= WIDE);
    // The mark is more important than the end of the word.
    let room = usize::from(place.width + 1).saturating_sub(text_width(mark));
    let text: String = word.chars().take(room).chain(mark.chars()).collect();
    canvas.put(place.x, HEAD - 1, place.x + place.width + 1, &text, style);
}

fn cell(model: &Model, process: &ProcessInfo, place: &Place, y: u16, canvas: &mut Canvas) {
    let theme = model.theme();
    let edge = (place.x + place.width).min(model.width);
    let samples = table::samples(model, process);
    let last = samples.map(|samples| &samples.last);
    let mut left = |text: &str, style| {
        canvas.put_cut(place.x, y, edge, text, style);
    };
    match place.column {
        Column::Number => left(number(&process.id), &theme.dim),
        Column::Name => {
            let name = format!("{} {}", style::kind(process), one_line(&process.name));
            left(&name, &theme.text);
        }
        Column::State => {
            let (sign, word, style) = style::state(process, theme);
            left(&format!("{sign} {}", with_health(model, process, word)), style);
        }
        Column::Cpu => {
            let now = samples.and_then(|samples| samples.cpu_now());
            let values = samples.map(|samples| spark(&samples.cpu, 100, place.spark));
            amount(model, place, y, (now.map(|now| now.to_string()), values), canvas);
        }
        Column::Memory => {
            let now = last.and_then(|last| last.memory_bytes).map(bytes);
            let values = samples.map(|samples| spark(&samples.memory, 1, place.spark));
            amount(model, place, y, (now, values), canvas);
        }
        Column::Age => left(&table::age(model, process).map(age).unwrap_or_default(), &theme.text),
        Column::Restarts => {
            let count = table::restarts(process);
            let style = if count > 0 { &theme.text } else { &theme.dim };
            right(place.x, edge, y, &count.to_string(), style, canvas);
        }
        Column::Ports => {
            let ports = last.and_then(|last| last.ports.as_ref()).into_iter().flatten();
            let ports: Vec<_> = ports.map(u16::to_string).collect();
            left(&ports.join(" "), &theme.text);
        }
        Column::LastLine => {
            let line = last.map(|last| one_line(&last.last_line)).unwrap_or_default();
            left(&line, &theme.dim);
        }
    }
}

/// The state and whether the process is ready, or the latter alone where there is no room for both: it is only known
/// while the process is running. If its health is checked, the state already is its health.
fn with_health(model: &Model, process: &ProcessInfo, word: String) -> String {
    if process.health.is_some() {
        return word;
    }
    let samples = table::samples(model, process);
    let health = samples.and_then(|samples| samples.last.health.as_ref());
    match health.filter(|_| is_alive(process)) {
        Some(health) if model.width >= WIDE => format!("{word}, {}", one_line(health)),
        Some(health) => one_line(health),
        None => word,
    }
}

/// A number at the right of its column, and the sparkline beside it.
fn amount(
    model: &Model,
    place: &Place,
    y: u16,
    (now, spark): (Option<String>, Option<String>),
    canvas: &mut Canvas,
) {
    let Some(now) = now else { return };
    let extra = if place.spark > 0 { place.spark + 1 } else { 0 };
    let edge = place.x + place.width - extra;
    right(place.x, edge, y, &now, &model.theme().text, canvas);
    let spark = spark.unwrap_or_default();
    right(edge + 1, place.x + place.width, y, &spark, &model.theme().accent, canvas);
}

fn right(
    x: u16,
    edge: u16,
    y: u16,
    text: &str,
    style: &patterm_screen::Style,
    canvas: &mut Canvas,
) {
    let begin = edge.saturating_sub(text_width(text) as u16).max(x);
    canvas.put_cut(begin, y, edge, text, style);
}

/// The last line of the chosen process, or why it is not running, not ready or not healthy, over the whole width.
fn detail(model: &Model, process: &ProcessInfo) -> String {
    let last = table::samples(model, process).map(|samples| samples.last.last_line.as_str());
    let why = process.why_not_running.as_ref().or(process.problem.as_ref());
    let text = match (&process.attention, why) {
        (Some(why), _) => format!("! {why}"),
        (None, Some(why)) => why.clone(),
        (None, None) => last.unwrap_or_default().to_owned(),
    };
    format!("{}: {}", process.name, one_line(&text))
}

/// The newest samples as bars, as many as fit. The highest bar is the largest of them, but at least `full`.
fn spark<T: Copy + Into<u64>>(samples: &VecDeque<T>, full: u64, width: u16) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = samples.iter().skip(samples.len().saturating_sub(usize::from(width)));
    let shown: Vec<u64> = shown.map(|sample| (*sample).into()).collect();
    let most = shown.iter().copied().max().unwrap_or(0).max(full);
    let bar = |sample: u64| {
        let eighths = (u128::from(sample) * 7).div_ceil(u128::from(most));
        BARS[usize::try_from(eighths).unwrap_or(7).min(7)]
    };
    shown.into_iter().map(bar).collect()
}

/// An amount of memory in at most four characters.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match value < 9.95 && unit > 0 {
        true => format!("{value:.1}{}", UNITS[unit]),
        false => format!("{value:.0}{}", UNITS[unit]),
    }
}

/// A time in at most five characters.
fn age(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m"),
        3600..36_000 => format!("{hours}h{:02}m", minutes % 60),
        36_000..86_400 => format!("{hours}h"),
        86_400..864_000 => format!("{days}d{:02}h", hours % 24),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_at_every_width() {
        for width in 1..300 {
            let places = places(width);
            assert!(
                places.iter().all(|place| place.x + place.width <= width),
                "{width}: {places:?}"
            );
            let has_name = places.iter().any(|place| place.column == Column::Name);
            assert_eq!(has_name, width > 1, "{width}");
        }
        let columns = |width| places(width).iter().map(|place| place.column).collect::<Vec<_>>();
        assert_eq!(columns(80), Column::ALL, "80 columns show everything");
        assert!(places(80).iter().all(|place| match place.column {
            Column::Cpu | Column::Memory => place.spark == 5,
            Column::LastLine => place.width >= LAST_LINE_MIN,
            _ => true,
        }));
        assert_eq!(columns(24), [Column::Name, Column::State]);
        assert_eq!(columns(20), [Column::Name, Column::State]);
        assert_eq!(columns(18), [Column::Name]);
    }

    #[test]
    fn a_sparkline_shows_the_newest_samples() {
        let samples = VecDeque::from([100_u32, 0, 50, 100, 200]);
        assert_eq!(spark(&samples, 100, 4), "▁▃▅█", "the largest is full");
        assert_eq!(
            spark(&VecDeque::from([1_u32, 100]), 100, 4),
            "▂█",
            "anything is more than nothing"
        );
        assert_eq!(spark(&VecDeque::<u32>::new(), 100, 4), "");
        assert_eq!(spark(&VecDeque::from([u64::MAX]), 1, 4), "█");
    }

    #[test]
    fn amounts_and_times_are_short() {
        let amounts = [0, 1 << 10, 999 << 10, 1000 << 10, 1 << 20, 9_990_000, 130 << 20, 3 << 30];
        let shown = amounts.map(bytes);
        assert_eq!(shown, ["0K", "1K", "999K", "1.0M", "1.0M", "9.5M", "130M", "3.0G"]);
        assert!(bytes(u64::MAX).len() <= 6);
        let times = [0, 59, 60, 3599, 3661, 36_000, 86_399, 90_000, 864_000].map(age);
        assert_eq!(times, ["0s", "59s", "1m", "59m", "1h01m", "10h", "23h", "1d01h", "10d"]);
    }
}
