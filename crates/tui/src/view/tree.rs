//! The tree of processes at the left.

use patterm_screen::Attributes;
use patterm_wire::follow::{SeenKind, SeenProcess};

use super::look;
use crate::canvas::{Canvas, Rect, text_width};
use crate::model::Model;

/// Rows above the first process: the project's name.
const HEAD: u16 = 1;

/// Rows at the most for the reason of the selected one's state.
const REASON_ROWS: usize = 4;

/// The process in a row of the tree.
pub(crate) fn process_at(model: &Model, y: u16) -> Option<&SeenProcess> {
    let row = usize::from(y.checked_sub(HEAD)?);
    let (first, rows) = window(model);
    let tree = model.tree();
    (row < rows).then(|| tree.get(first + row).map(|(_, process)| *process)).flatten()
}

/// Which part of the tree is shown: the first process, and how many have room.
fn window(model: &Model) -> (usize, usize) {
    let below = reason_lines(model).len();
    let below = if below > 0 { below + 1 } else { 0 };
    let rows = usize::from(model.tree_area().height.saturating_sub(HEAD)).saturating_sub(below);
    let rows = rows.max(1);
    let tree = model.tree();
    let selected = model.selected().map(|process| &process.id);
    let at = tree.iter().position(|(_, process)| Some(&process.id) == selected).unwrap_or(0);
    let first = (at + 1).saturating_sub(rows).min(tree.len().saturating_sub(rows));
    (first, rows)
}

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let area = model.tree_area();
    if area.width == 0 {
        return;
    }
    for y in area.y..area.bottom() {
        canvas.put(area.right(), y, area.right() + 1, "│", &look::dim());
    }
    let project = model.seen.project.rsplit('/').next().unwrap_or_default();
    canvas.put_cut(area.x + 1, area.y, area.right(), project, &look::bold());
    let (first, rows) = window(model);
    let tree = model.tree();
    for (row, (depth, process)) in tree.iter().skip(first).take(rows).enumerate() {
        let room = Rect::new(area.x, area.y + HEAD + row as u16, area.width, 1);
        draw_process(model, canvas, room, (first + row + 1, *depth, process));
    }
    let hidden = tree.len().saturating_sub(first + rows);
    if hidden > 0 && rows > 0 {
        let y = area.y + HEAD + rows as u16 - 1;
        let text = format!(" +{hidden} ");
        let x = area.right().saturating_sub(text.len() as u16);
        canvas.put(x, y, area.right(), &text, &look::inverse());
    }
    draw_reason(model, canvas, area);
}

fn draw_process(
    model: &Model,
    canvas: &mut Canvas,
    room: Rect,
    (number, depth, process): (usize, usize, &SeenProcess),
) {
    let (sign, word, style) = look::state(process);
    let edge = room.right();
    let is_selected = model.selected().is_some_and(|selected| selected.id == process.id);
    let is_shown = model.panes.values().any(|pane| pane.process == process.id);
    let name_look = if is_shown { look::bold() } else { look::plain() };
    let digit = if number < 10 { number.to_string() } else { " ".to_owned() };
    canvas.put(room.x, room.y, edge, &digit, &look::dim());
    let (mark, mark_look) = if process.attention.is_some() {
        ("!", look::bad())
    } else if process.unread {
        ("•", look::accent())
    } else {
        // A colour would be seen where the row is shown inverse.
        (" ", look::plain())
    };
    canvas.put(room.x + 1, room.y, edge, mark, &mark_look);
    let x = room.x + 2 + 2 * depth.min(4) as u16;
    let x = canvas.put(x, room.y, edge, sign, &style);
    let x = canvas.put(x + 1, room.y, edge, look::kind(process), &look::dim());
    // The word stands at the right where there is room for it and some of the name.
    let word_width = text_width(&word) as u16;
    let fits = x + 9 + word_width < edge;
    let name_edge = if fits { edge - word_width - 1 } else { edge };
    canvas.put_cut(x + 1, room.y, name_edge, &process.name, &name_look);
    if fits {
        canvas.put(edge - word_width, room.y, edge, &word, &style);
    }
    if is_selected {
        canvas.restyle(room, |style| style.attributes = style.attributes | Attributes::INVERSE);
    }
}

/// Why the selected agent's state is what it is, or what it asks for.
fn reason_lines(model: &Model) -> Vec<String> {
    let Some(process) = model.selected() else { return Vec::new() };
    let width = usize::from(model.tree_columns()).saturating_sub(2);
    if width < 8 || model.height < 12 {
        return Vec::new();
    }
    let text = match (&process.attention, process.kind) {
        (Some(why), _) => format!("! {why}"),
        (None, SeenKind::Agent) => {
            let (_, word, _) = look::state(process);
            format!("{word}: {}", process.reason)
        }
        (None, _) => return Vec::new(),
    };
    let mut lines = wrap(&text, width);
    lines.truncate(REASON_ROWS);
    lines
}

fn draw_reason(model: &Model, canvas: &mut Canvas, area: Rect) {
    let lines = reason_lines(model);
    let top = area.bottom().saturating_sub(lines.len() as u16);
    for (row, line) in lines.iter().enumerate() {
        canvas.put(area.x + 1, top + row as u16, area.right(), line, &look::dim());
    }
}

/// Cuts a text into lines at blanks.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for part in text.lines() {
        let mut line = String::new();
        for word in part.split(' ') {
            let mut word = word.to_owned();
            if !line.is_empty() && text_width(&line) + 1 + text_width(&word) > width {
                lines.push(std::mem::take(&mut line));
            }
            while text_width(&word) > width {
                let cut = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
                let rest = word.split_off(cut);
                lines.push(std::mem::replace(&mut word, rest));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}
