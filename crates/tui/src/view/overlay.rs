//! What is drawn over the panes: the leader's keys, lists, texts, help.

use patterm_screen::Span;

use super::{dashboard, digest, labels, logs, overview, prompt, restore, style, tree, trust};
use crate::action::ACTIONS;
use crate::canvas::{Canvas, Rect, text_width};
use crate::list;
use crate::markdown::{self, Row};
use crate::model::{ListKind, Mode, Model, Question};

/// After this time, the keys after the leader are shown.
pub(crate) const LEADER_MS: u64 = 300;

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    match &model.mode {
        Mode::Line { question: Question::Prompt(agent), text } => {
            prompt::draw(model, agent, text, canvas);
        }
        Mode::Typing
        | Mode::Past
        | Mode::Line { .. }
        | Mode::Confirm(_)
        | Mode::Interrupted { .. } => {}
        // A user who knows the key presses it at once and needs no list.
        Mode::Leader if model.now < model.leader_at.saturating_add(LEADER_MS) => {}
        Mode::Leader => leader(model, canvas),
        Mode::Labels => labels::draw(model, canvas),
        Mode::List { kind, chosen, filter } => draw_list(model, *kind, *chosen, filter, canvas),
        Mode::Text { title, top, .. } => draw_text(model, title, *top, canvas),
        Mode::Pad { name, top, .. } => {
            draw_text(model, &format!("scratchpad {name}"), *top, canvas);
        }
        Mode::Logs => logs::draw(model, canvas),
        Mode::Help { top } => draw_text(model, "help", *top, canvas),
        Mode::Restore { chosen, left_out } => {
            restore::draw(model, *chosen, left_out, canvas);
        }
        Mode::Dashboard { .. } => dashboard::draw(model, canvas),
        Mode::Digest(panel) => digest::draw(model, panel, canvas),
        Mode::Trust(panel) => trust::draw(model, panel, canvas),
        Mode::Overview(place) => overview::draw(model, place, canvas),
        Mode::Answer(panel) => overview::draw_answer(model, panel, canvas),
    }
}

pub(super) fn above_status(model: &Model) -> Rect {
    Rect::new(0, 0, model.width, model.height - 1)
}

/// The leader's keys, in as many columns as fit, right above the status bar.
fn leader(model: &Model, canvas: &mut Canvas) {
    let area = above_status(model);
    // The width of a key, and of a key with its description.
    let (key_width, column_width) = if area.width < 40 { (4, 19) } else { (12, 26) };
    let keys = &model.settings.keys;
    let shown = ACTIONS.iter().filter_map(|entry| Some((keys.shown(entry)?, entry.short)));
    let shown: Vec<_> = shown.collect();
    let columns = (area.width.saturating_sub(2) / column_width).max(1);
    let rows = (shown.len() as u16).div_ceil(columns).max(1);
    let height = (rows + 2).min(area.height);
    let room = Rect { y: area.bottom() - height, height, ..area };
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, &format!("{}, then", keys.leader_name()), &model.theme().accent);
    let inner = room.inner();
    for (at, (key, short)) in shown.iter().enumerate() {
        let (column, row) = (at as u16 / rows, at as u16 % rows);
        if row >= inner.height {
            continue;
        }
        let x = inner.x + column * column_width;
        let edge = (x + column_width - 1).min(inner.right());
        let after = canvas.put(x, inner.y + row, edge, &format!(" {key}"), &model.theme().accent);
        canvas.put_cut(
            (x + key_width + 1).max(after + 1),
            inner.y + row,
            edge,
            short,
            &model.theme().text,
        );
    }
}

/// Narrower lists show only names, and marks of two characters.
const DETAIL_WIDTH: u16 = 30;

fn list_room(model: &Model) -> Rect {
    let area = above_status(model);
    let width = (area.width.saturating_mul(3) / 4).clamp(40.min(area.width), 110);
    let height = (area.height * 3 / 4).max(8.min(area.height));
    area.middle(width, height)
}

/// The item of the open list at a position; `None` outside of the list.
pub(crate) fn list_row(model: &Model, x: u16, y: u16) -> Option<usize> {
    let Mode::List { kind, chosen, filter } = &model.mode else { return None };
    let room = list_room(model);
    if !room.contains(x, y) {
        return None;
    }
    let inner = room.inner().cut_top(1).1;
    let count = list::items(model, *kind, filter).len();
    let first = first_shown(*chosen, usize::from(inner.height), count);
    match inner.contains(x, y) {
        true => Some(first + usize::from(y - inner.y)),
        false => Some(usize::MAX),
    }
}

/// The first row to show, so that the chosen one is visible.
pub(super) fn first_shown(chosen: usize, rows: usize, count: usize) -> usize {
    (chosen + 1).saturating_sub(rows).min(count.saturating_sub(rows))
}

fn draw_list(model: &Model, kind: ListKind, chosen: usize, filter: &str, canvas: &mut Canvas) {
    let room = list_room(model);
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, list::title(kind), &model.theme().accent);
    let (top, inner) = room.inner().cut_top(1);
    let x = canvas.put(top.x + 1, top.y, top.right(), "› ", &model.theme().accent);
    let x = canvas.put(x, top.y, top.right(), filter, &model.theme().text);
    let shape = patterm_screen::CursorShape::Bar;
    canvas.caret = Some(crate::canvas::Caret { x, y: top.y, shape, blinking: false });
    let items = list::items(model, kind, filter);
    if items.is_empty() {
        canvas.put_cut(
            inner.x + 1,
            inner.y,
            inner.right(),
            list::when_empty(model, kind),
            &model.theme().dim,
        );
    }
    let marks = items.iter().map(|item| text_width(&item.mark)).max().unwrap_or(0) as u16;
    let marks = marks.min(if room.width < DETAIL_WIDTH { 2 } else { marks });
    let first = first_shown(chosen, usize::from(inner.height), items.len());
    let shown = items.iter().enumerate().skip(first).take(usize::from(inner.height));
    for (line, (at, item)) in shown.enumerate() {
        let row = Rect { y: inner.y + line as u16, height: 1, ..inner };
        canvas.put(row.x + 1, row.y, row.x + 1 + marks, &item.mark, &model.theme().accent);
        let x = row.x + marks + if marks > 0 { 2 } else { 1 };
        // The detail gets the rest of the row, and at least a third of it.
        let detail_text = if row.width < DETAIL_WIDTH { "" } else { &item.detail };
        let detail = text_width(detail_text) as u16;
        let most = row.right().saturating_sub(x + 2);
        let text = (text_width(&item.text) as u16).min(most.saturating_sub(detail.min(most / 3)));
        let x = canvas.put_cut(x, row.y, x + text, &item.text, &model.theme().text);
        let begin = (row.right().saturating_sub(1 + detail)).max(x + 2);
        canvas.put_cut(begin, row.y, row.right() - 1, detail_text, &model.theme().dim);
        if at == chosen {
            canvas.restyle(row, |style| style::select(style, &model.theme().selected));
        }
    }
}

fn text_width_of(model: &Model) -> u16 {
    let width = above_status(model).width;
    // No margins on a narrow terminal.
    width.saturating_sub(if width < 40 { 4 } else { 8 }).min(100)
}

/// The rows of a text, a scratchpad or the help.
fn text_rows(model: &Model) -> Vec<Row> {
    let width = usize::from(text_width_of(model));
    let lines = match &model.mode {
        Mode::Pad { text, .. } => return markdown::rows(text, width, model.theme()),
        Mode::Text { text, .. } => tree::wrap(text, width),
        Mode::Help { .. } => help(model),
        _ => Vec::new(),
    };
    let row = |text| vec![Span { text, style: model.theme().text.clone() }];
    lines.into_iter().map(row).collect()
}

/// The first visible row when scrolled to the end.
pub(crate) fn last_top(model: &Model) -> usize {
    let rows = usize::from(above_status(model).height.saturating_sub(2));
    text_rows(model).len().saturating_sub(rows)
}

/// Draws a text, a scratchpad or the help.
fn draw_text(model: &Model, title: &str, top: usize, canvas: &mut Canvas) {
    let area = above_status(model);
    let rows = text_rows(model);
    let height = (rows.len() as u16).saturating_add(2).clamp(3.min(area.height), area.height);
    let room = area.middle(text_width_of(model) + 4, height);
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, title, &model.theme().accent);
    let inner = room.inner();
    let last = rows.len().saturating_sub(usize::from(inner.height));
    let shown = rows.iter().skip(top.min(last)).take(usize::from(inner.height));
    for (row, runs) in shown.enumerate() {
        canvas.put_runs(inner.x + 1, inner.y + row as u16, inner.right(), runs);
    }
    // How much more there is.
    if last > 0 && room.width > 12 {
        let below = rows.len() - top.min(last) - usize::from(inner.height).min(rows.len());
        let text = if below > 0 { format!(" {below} more ↓ ") } else { " end ".to_owned() };
        let x = room.right().saturating_sub(text_width(&text) as u16 + 2);
        canvas.put(x, room.bottom() - 1, room.right(), &text, &model.theme().accent);
    }
}

/// What the help says after the keys.
const HELP: [&str; 6] = [
    "In the tree: @ agent, $ command, > shell; ● working or running, ○ idle, ◆ waiting for you, ! asks for \
     attention, ↺ interrupted, → marked, * bell, • new output that you have not seen.",
    "In the dashboard: arrows choose a row and the column to sort by, r reverses the order, enter shows the \
     process; restart, stop and close work without the leader.",
    "In scrollback: arrows, hjkl, w, b and e, page up and down, g and G; a number before a movement repeats it; \
     / searches, n and N repeat the search; v, V or ctrl+v selects text, rows or a block, o the last command's \
     output; y or enter copies, q closes.",
    "Back in time: left and right step a second, up and down ten, page up and down a minute, g and G go to the \
     beginning and to now; comma and full stop step from change to change; e, m, s, a go back to an event, a message, \
     a state, a request for attention, with shift forward; / searches, n and N repeat the search; t or a digit takes a \
     time; tab switches between this pane and all; esc returns to now.",
    "In the logs: tab shows one process, f only lines with a text; / searches, n and N repeat the search; G \
     follows, q closes.",
    "Mouse: click in the tree or on a page's name, scroll with the wheel, drag to copy (with alt: a block), \
     double-click a word, triple-click a line, click a link, drag lines to resize; hold shift if the program \
     uses the mouse.",
];

fn help(model: &Model) -> Vec<String> {
    let keys = &model.settings.keys;
    let leader = keys.leader_name();
    let mut lines = Vec::new();
    for error in model.settings_error.iter().chain(&model.snapshot.settings_problem) {
        lines.extend(tree::wrap(&format!("✗ {error}"), usize::from(text_width_of(model))));
        lines.push(String::new());
    }
    lines.push(format!("Keys go to the pane, except after {leader}:"));
    if model.shares_tmux_prefix() {
        lines.push(format!("(In tmux, press {leader} twice, or set another leader in tui.toml.)"));
    }
    lines.push(String::new());
    let shown = ACTIONS.iter().filter(|entry| !keys.all(entry).is_empty());
    lines.extend(shown.map(|entry| format!("  {:<13} {}", keys.all(entry), entry.description)));
    let settings = format!("Set keys and colours in {}.", model.settings_path);
    for paragraph in HELP.into_iter().chain([settings.as_str()]) {
        lines.push(String::new());
        lines.extend(tree::wrap(paragraph, usize::from(text_width_of(model))));
    }
    lines
}
