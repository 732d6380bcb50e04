//! The sheet with what the project file would run, and the word about it in the status line.

use patterm_wire::follow::ProjectFileState;

use super::overlay::above_status;
use crate::action::Action;
use crate::canvas::{Canvas, Rect, text_width};
use crate::model::Model;
use crate::trust::{GUTTER, Sheet};

/// What stands in the status line while the file is not in effect.
pub(super) fn badge(model: &Model) -> Option<String> {
    let words = match model.seen.project_file.state {
        ProjectFileState::Untrusted => "not trusted",
        ProjectFileState::Faulty => "has mistakes",
        ProjectFileState::Absent | ProjectFileState::Trusted => return None,
    };
    let press = model.settings.keys.press(Action::Trust);
    Some(format!("! patterm.toml {words} ({press})"))
}

/// The keys of the sheet.
pub(super) fn keys(model: &Model, sheet: &Sheet) -> &'static str {
    match (&sheet.hash, sheet.shows_end(body(model))) {
        (None, _) => " esc closes ",
        (Some(_), true) => " t trusts exactly this  esc leaves it ",
        (Some(_), false) => " page down: more of it  esc leaves it ",
    }
}

fn room(model: &Model) -> Rect {
    above_status(model)
}

/// Where the text of the sheet stands.
pub(crate) fn body(model: &Model) -> Rect {
    match model.height {
        0 => Rect::default(),
        _ => Sheet::body(room(model)),
    }
}

pub(super) fn draw(model: &Model, sheet: &Sheet, canvas: &mut Canvas) {
    let room = room(model);
    canvas.clear(room, &model.theme().text);
    let faulty = model.seen.project_file.state == ProjectFileState::Faulty;
    let title = match faulty {
        true => "patterm.toml has mistakes",
        false => "patterm.toml is not trusted",
    };
    canvas.frame(room, title, &model.theme().accent);
    let inner = room.inner();
    if inner.height == 0 {
        return;
    }
    let body = body(model);
    if body.y > inner.y || sheet.lines.is_empty() {
        let words = words(sheet, faulty);
        canvas.put_cut(inner.x + 1, inner.y, inner.right(), words, &model.theme().strong);
    }
    let rows = sheet.rows(body.width);
    let first = sheet.first(rows.len(), body.height);
    let shown = rows.iter().enumerate().skip(first).take(usize::from(body.height));
    for (at, row) in shown {
        let y = body.y + (at - first) as u16;
        if row.continues {
            canvas.put(body.x, y, body.right(), "↪", &model.theme().accent);
        }
        let heads = !row.continues && !row.text.starts_with(' ');
        let style = if heads { model.theme().strong.clone() } else { model.theme().text.clone() };
        canvas.put(body.x + GUTTER, y, body.right(), &row.text, &style);
    }
    let last = (first + usize::from(body.height)).min(rows.len());
    let place = format!(" rows {}-{last} of {} ", first + 1, rows.len());
    let width = text_width(&place) as u16;
    if !rows.is_empty() && width + 4 < room.width {
        let x = room.right() - width - 2;
        canvas.put(x, room.bottom() - 1, room.right(), &place, &model.theme().accent);
    }
}

fn words(sheet: &Sheet, faulty: bool) -> &'static str {
    match (faulty, sheet.lines.is_empty(), sheet.anew) {
        (_, true, _) => "looking at it…",
        (true, ..) => "Nothing of it takes effect before they are mended:",
        (false, _, true) => "It changed while you looked. Nothing of it runs. Now it declares:",
        (false, _, false) => "Nothing of it runs before you trust it. It declares:",
    }
}
