//! The logs of all processes.

use patterm_screen::{Colour, Span, Style};
use patterm_wire::logs::LogLine;

use super::overlay::above_status;
use crate::canvas::{Canvas, Rect, text_width};
use crate::list::one_line;
use crate::logs::{LogsView, Typing, matches};
use crate::model::Model;

/// On a narrower terminal there is no room for times.
const TIME_WIDTH: u16 = 60;

/// Columns for names, at most.
const NAME_COLUMNS: u16 = 16;

/// The colours of names: of the terminal's own, those that are readable on dark and on light ones.
const COLOURS: [u8; 6] = [6, 3, 2, 5, 4, 1];

/// The rows for lines.
pub(crate) fn log_rows(model: &Model) -> usize {
    usize::from(model.height.saturating_sub(2))
}

/// The prompt and the text that is being typed.
pub(super) fn line(logs: &LogsView) -> Option<(String, String)> {
    Some(match logs.typing? {
        Typing::Filter => ("only lines with: ".to_owned(), logs.filter.clone()),
        Typing::Search => ("search: ".to_owned(), logs.search.clone()),
    })
}

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let Some(logs) = &model.logs else { return };
    let area = above_status(model);
    canvas.clear(area, &model.theme().text);
    let (head, body) = area.cut_top(1);
    draw_head(model, logs, head, canvas);
    let visible = logs.visible(log_rows(model));
    if visible.is_empty() {
        let text = match (logs.current, logs.filter.is_empty() && logs.process.is_none()) {
            (false, _) => "reading…",
            (true, true) => "no process has printed a line",
            (true, false) => "no line passes the filter",
        };
        canvas.put_cut(body.x + 1, body.y, body.right(), text, &model.theme().dim);
    }
    let names = visible.iter().map(|(_, line)| text_width(&one_line(&line.name)) as u16).max();
    let names = names.unwrap_or(0).min(NAME_COLUMNS).min(body.width / 3);
    for (row, (number, line)) in visible.iter().enumerate() {
        let row = Rect { y: body.y + row as u16, height: 1, ..body };
        draw_line(model, logs, line, row, names, canvas);
        if logs.found == Some(*number) {
            canvas.put(row.x, row.y, row.right(), "▸", &model.theme().accent);
        }
    }
}

/// What is shown, and whether it is all.
fn draw_head(model: &Model, logs: &LogsView, head: Rect, canvas: &mut Canvas) {
    let name = |id: &String| model.process(id).map_or(id.clone(), |process| process.name.clone());
    let of = logs.process.as_ref().map_or_else(|| "all processes".to_owned(), name);
    let mut title = format!(" logs of {}", one_line(&of));
    if !logs.filter.is_empty() {
        title += &format!(", lines with “{}”", one_line(&logs.filter));
    }
    let state = if logs.follows() { " following " } else { " G follows " };
    let edge = head.right().saturating_sub(text_width(state) as u16);
    canvas.clear(head, &model.theme().bar);
    canvas.put_cut(head.x, head.y, edge, &title, &model.theme().bar);
    if edge > head.x + 16 {
        canvas.put(edge, head.y, head.right(), state, &model.theme().bar);
    }
}

fn draw_line(
    model: &Model,
    logs: &LogsView,
    line: &LogLine,
    row: Rect,
    names: u16,
    canvas: &mut Canvas,
) {
    let mut x = row.x + 1;
    if row.width >= TIME_WIDTH {
        let time = line.time_ms.map_or_else(|| "--:--:--".to_owned(), |ms| clock(model, ms));
        x = canvas.put(x, row.y, row.right(), &time, &model.theme().dim) + 1;
    }
    let number = crate::list::number(&line.process_id).parse::<usize>().unwrap_or(0);
    let foreground = Colour::Indexed(COLOURS[number % COLOURS.len()]);
    let style = Style { foreground, ..model.theme().text.clone() };
    canvas.put_cut(x, row.y, x + names, &one_line(&line.name), &style);
    x = canvas.put(x + names, row.y, row.right(), " │ ", &model.theme().dim);
    let text: String = one_line(&line.text).chars().skip(logs.left).collect();
    let spans = marked(&text, &logs.search, &model.theme().text, &model.theme().selected);
    let end = canvas.put_runs(x, row.y, row.right(), &spans);
    if text_width(&text) > usize::from(row.right().saturating_sub(x)) && end > x {
        canvas.put(row.right() - 1, row.y, row.right(), "…", &model.theme().dim);
    }
}

/// A text with all matches of a search marked.
fn marked(text: &str, search: &str, plain: &Style, found: &Style) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    let mut push = |text: &str, style: &Style| {
        spans.push(Span { text: text.to_owned(), style: style.clone() });
    };
    for place in matches(text, search) {
        push(&text[at..place.start], plain);
        push(&text[place.clone()], found);
        at = place.end;
    }
    push(&text[at..], plain);
    spans
}

/// The time of the day.
pub(super) fn clock(model: &Model, wall_ms: u64) -> String {
    let seconds = i64::try_from(wall_ms / 1_000).unwrap_or(0) + i64::from(model.utc_offset);
    let of_day = seconds.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}
