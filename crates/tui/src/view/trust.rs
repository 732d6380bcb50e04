//! The panel with what the project file would run, and the note about it in the status bar.

use patterm_wire::follow::ProjectFileState;

use super::overlay::above_status;
use crate::action::Action;
use crate::canvas::{Canvas, Rect, text_width};
use crate::list::one_line;
use crate::model::Model;
use crate::trust::{GUTTER, TrustPanel};

/// The note in the status bar while the file is not in effect.
pub(super) fn badge(model: &Model) -> Option<String> {
    let text = match &model.snapshot.project_file.state {
        ProjectFileState::Untrusted if model.snapshot.project_file.changed => "has changed",
        ProjectFileState::Untrusted => "not trusted",
        ProjectFileState::Faulty => "has errors",
        ProjectFileState::Other(state) => {
            return Some(format!("! patterm.toml {}", one_line(state)));
        }
        ProjectFileState::Absent | ProjectFileState::Trusted => return None,
    };
    let press = model.settings.keys.press(Action::Trust);
    Some(format!("! patterm.toml {text} ({press})"))
}

/// The keys of the panel.
pub(super) fn keys(model: &Model, panel: &TrustPanel) -> &'static str {
    match (&panel.hash, panel.shows_end(body(model))) {
        (None, _) => " esc close ",
        (Some(_), true) => " t trust exactly this  esc close ",
        (Some(_), false) => " page down for more  esc close ",
    }
}

fn room(model: &Model) -> Rect {
    above_status(model)
}

/// The area of the panel's text.
pub(crate) fn body(model: &Model) -> Rect {
    match model.height {
        0 => Rect::default(),
        _ => TrustPanel::body(room(model)),
    }
}

pub(super) fn draw(model: &Model, panel: &TrustPanel, canvas: &mut Canvas) {
    let room = room(model);
    canvas.clear(room, &model.theme().text);
    let faulty = model.snapshot.project_file.state == ProjectFileState::Faulty;
    let changed = model.snapshot.project_file.changed;
    let title = match (faulty, changed) {
        (true, _) => "patterm.toml has errors",
        (false, true) => "patterm.toml has changed since you trusted it",
        (false, false) => "patterm.toml is not trusted",
    };
    canvas.frame(room, title, &model.theme().accent);
    let inner = room.inner();
    if inner.height == 0 {
        return;
    }
    let body = body(model);
    if body.y > inner.y || panel.lines.is_empty() {
        let text = introduction(panel, faulty, changed);
        canvas.put_cut(inner.x + 1, inner.y, inner.right(), text, &model.theme().strong);
    }
    let rows = panel.rows(body.width);
    let first = panel.first(rows.len(), body.height);
    let shown = rows.iter().enumerate().skip(first).take(usize::from(body.height));
    for (at, row) in shown {
        let y = body.y + (at - first) as u16;
        if row.continues {
            canvas.put(body.x, y, body.right(), "↪", &model.theme().accent);
        }
        let is_heading = !row.continues && !row.text.starts_with(' ');
        let style =
            if is_heading { model.theme().strong.clone() } else { model.theme().text.clone() };
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

fn introduction(panel: &TrustPanel, faulty: bool, changed: bool) -> &'static str {
    match (faulty, panel.changed) {
        _ if panel.lines.is_empty() => "reading it…",
        (true, _) => "It does not take effect until these are fixed:",
        (false, true) if changed => {
            "It changed while you were reading. Nothing new runs yet (- before, + now):"
        }
        (false, true) => "It changed while you were reading. It does not run yet. It now declares:",
        (false, false) if changed => {
            "The changes do not run until you trust them (- before, + now):"
        }
        (false, false) => "It does not run until you trust it. It declares:",
    }
}
