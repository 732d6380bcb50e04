//! The tree of processes.

use patterm_wire::follow::{ProcessInfo, ProcessKind};
use patterm_wire::reason;

use super::style;
use crate::canvas::{Canvas, Rect, text_width, width_of};
use crate::list::number;
use crate::model::Model;

/// Rows above the first process: the project's name.
const HEAD: u16 = 1;

/// The maximum number of rows for the reason of the selected process's state.
const REASON_ROWS: usize = 4;

/// The maximum number of rows for what waits for an agent that was interrupted.
const INTERRUPTED_ROWS: usize = 6;

/// The process in a row of the tree.
pub(crate) fn process_at(model: &Model, y: u16) -> Option<&ProcessInfo> {
    let row = usize::from(y.checked_sub(HEAD)?);
    let (first, rows) = window(model);
    let tree = model.tree();
    (row < rows).then(|| tree.get(first + row).map(|(_, process)| *process)).flatten()
}

/// The visible part of the tree: the first process, and how many fit.
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
        canvas.put(area.right(), y, area.right() + 1, "│", &model.theme().dim);
    }
    let project = model.snapshot.project.rsplit('/').next().unwrap_or_default();
    canvas.put_cut(area.x + 1, area.y, area.right(), project, &model.theme().strong);
    let (first, rows) = window(model);
    let tree = model.tree();
    let digits =
        tree.iter().map(|(_, process)| number(&process.id).len()).max().unwrap_or(1) as u16;
    for (row, (depth, process)) in tree.iter().skip(first).take(rows).enumerate() {
        let room = Rect::new(area.x, area.y + HEAD + row as u16, area.width, 1);
        draw_process(model, canvas, room, (digits, *depth, process));
    }
    let hidden = tree.len().saturating_sub(first + rows);
    if hidden > 0 && rows > 0 {
        let y = area.y + HEAD + rows as u16 - 1;
        let text = format!(" +{hidden} ");
        let x = area.right().saturating_sub(text.len() as u16);
        canvas.put(x, y, area.right(), &text, &model.theme().bar);
    }
    draw_reason(model, canvas, area);
}

fn draw_process(
    model: &Model,
    canvas: &mut Canvas,
    room: Rect,
    (digits, depth, process): (u16, usize, &ProcessInfo),
) {
    let (sign, word, style) = style::state(process, model.theme());
    let edge = room.right();
    let is_selected = model.selected().is_some_and(|selected| selected.id == process.id);
    let is_shown = model.panes.values().any(|pane| pane.process == process.id);
    let name_style = if is_shown { &model.theme().strong } else { &model.theme().text };
    let id = number(&process.id);
    let x = room.x + digits.saturating_sub(id.len() as u16);
    canvas.put(x, room.y, edge, id, &model.theme().dim);
    let (mark, mark_style) = if process.output_problem.is_some() {
        ("✗", &model.theme().bad)
    } else if process.attention.is_some() {
        ("!", &model.theme().bad)
    } else if process.interrupted.is_some() {
        ("↺", &model.theme().accent)
    } else if model.marked.contains(&process.id) {
        ("→", &model.theme().accent)
    } else if model.bells.contains(&process.id) || process.rang {
        ("*", &model.theme().accent)
    } else if process.unread {
        ("•", &model.theme().accent)
    } else {
        // A colour would be visible in an inverse row.
        (" ", &model.theme().text)
    };
    canvas.put(room.x + digits, room.y, edge, mark, mark_style);
    let x = room.x + digits + 1 + 2 * depth.min(4) as u16;
    let x = canvas.put(x, room.y, edge, sign, style);
    let x = canvas.put(x + 1, room.y, edge, style::kind(process), &model.theme().dim);
    // The word is at the right if it fits together with a part of the name.
    let word_width = text_width(&word) as u16;
    let fits = x + 9 + word_width < edge;
    let name_edge = if fits { edge - word_width - 1 } else { edge };
    canvas.put_cut(x + 1, room.y, name_edge, &process.name, name_style);
    if fits {
        canvas.put(edge - word_width, room.y, edge, &word, style);
    }
    if is_selected {
        canvas.restyle(room, |style| style::select(style, &model.theme().selected));
    }
}

/// The reason of the selected agent's state, of its request for attention, or what is wrong with a process.
fn reason_lines(model: &Model) -> Vec<String> {
    let Some(process) = model.selected() else { return Vec::new() };
    let width = usize::from(model.tree_columns()).saturating_sub(2);
    if width < 8 || model.height < 12 {
        return Vec::new();
    }
    let text = match (&process.output_problem, &process.attention, &process.kind) {
        (Some(problem), ..) => format!("✗ {problem}"),
        (None, Some(why), _) => format!("! {why}"),
        (None, None, ProcessKind::Agent) => {
            let (_, word, _) = style::state(process, model.theme());
            let until = process.limited.as_ref().filter(|until| !until.is_empty());
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            match reason::plain(&process.reason) {
                "" => format!("{word}{until}"),
                reason => format!("{word}{until}: {reason}"),
            }
        }
        (None, None, _) => match &process.problem {
            Some(problem) => format!("✗ {problem}"),
            None => return Vec::new(),
        },
    };
    let mut lines = wrap(&text, width);
    lines.truncate(REASON_ROWS);
    if let Some(interrupted) = &process.interrupted {
        lines.extend(wrap(&format!("↺ {interrupted}"), width).into_iter().take(INTERRUPTED_ROWS));
    }
    lines
}

fn draw_reason(model: &Model, canvas: &mut Canvas, area: Rect) {
    let lines = reason_lines(model);
    let has_problem = model
        .selected()
        .is_some_and(|process| process.output_problem.is_some() || process.problem.is_some());
    let style = if has_problem { &model.theme().bad } else { &model.theme().dim };
    let top = area.bottom().saturating_sub(lines.len() as u16);
    for (row, line) in lines.iter().enumerate() {
        canvas.put(area.x + 1, top + row as u16, area.right(), line, style);
    }
}

/// Bytes of a word that fit; at least one character, so that it terminates.
fn fitting(word: &str, width: usize) -> usize {
    let over = word.char_indices().skip(1).find(|(at, character)| {
        text_width(&word[..*at]) + usize::from(width_of(*character)) > width
    });
    over.map_or(word.len(), |(at, _)| at)
}

/// Wraps text at blanks.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for part in text.lines() {
        let mut line = String::new();
        for word in part.split(' ') {
            let mut word = word.to_owned();
            if !line.is_empty() && text_width(&line) + 1 + text_width(&word) > width {
                lines.push(std::mem::take(&mut line));
            }
            while fitting(&word, width) < word.len() {
                let rest = word.split_off(fitting(&word, width));
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

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_wrapped_at_blanks_and_long_words_are_broken() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("漢字", 0), ["漢", "字"], "it terminates");
        assert_eq!(wrap("a\nb", 9), ["a", "b"]);
    }
}
