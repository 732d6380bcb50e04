//! What happened while the user was away.

use patterm_wire::digest::{DigestLine, LineKind, duration_text};

use super::logs::clock;
use super::{overlay, style};
use crate::away::DigestPanel;
use crate::canvas::{Canvas, Rect};
use crate::list::one_line;
use crate::model::{Mode, Model};

/// The widest panel.
const COLUMNS: u16 = 120;

/// On a narrower panel, times are left out.
const TIME_WIDTH: u16 = 50;

fn room(model: &Model, panel: &DigestPanel) -> Rect {
    let area = overlay::above_status(model);
    let width = area.width.saturating_sub(if area.width < 40 { 0 } else { 6 }).min(COLUMNS);
    let height =
        (panel.lines.len() as u16).saturating_add(4).clamp(5.min(area.height), area.height);
    area.middle(width, height)
}

/// The area of the lines; on a small terminal the keys are left out.
fn rows(model: &Model, panel: &DigestPanel) -> Rect {
    let inner = room(model, panel).inner();
    Rect { height: inner.height.saturating_sub(if inner.height > 4 { 2 } else { 0 }), ..inner }
}

/// The line at a position; `None` outside of the panel, and a line that does not exist between its lines.
pub(crate) fn digest_line(model: &Model, x: u16, y: u16) -> Option<usize> {
    let Mode::Digest(panel) = &model.mode else { return None };
    let rows = rows(model, panel);
    if !room(model, panel).contains(x, y) {
        return None;
    }
    let first = overlay::first_shown(panel.chosen, usize::from(rows.height), panel.lines.len());
    Some(match rows.contains(x, y) {
        true => first + usize::from(y - rows.y),
        false => usize::MAX,
    })
}

pub(super) fn draw(model: &Model, panel: &DigestPanel, canvas: &mut Canvas) {
    let room = room(model, panel);
    canvas.clear(room, &model.theme().text);
    let covers = panel.covers_ms.map(|ms| format!(" ({})", duration_text(ms)));
    let title = format!("while you were away{}", covers.unwrap_or_default());
    canvas.frame(room, &title, &model.theme().accent);
    let (inner, rows) = (room.inner(), rows(model, panel));
    if rows.height < inner.height {
        let keys = match panel.by_itself_at {
            Some(_) => "enter go there   esc close   other keys go to the pane",
            None => "enter go there   esc close",
        };
        canvas.put_cut(inner.x + 1, inner.bottom() - 1, inner.right(), keys, &model.theme().accent);
    }
    let first = overlay::first_shown(panel.chosen, usize::from(rows.height), panel.lines.len());
    let shown = panel.lines.iter().enumerate().skip(first).take(usize::from(rows.height));
    for (row, (at, line)) in shown.enumerate() {
        let area = Rect { y: rows.y + row as u16, height: 1, ..rows };
        draw_line(model, area, line, canvas);
        if at == panel.chosen && line.target.is_some() {
            canvas.restyle(area, |style| style::select(style, &model.theme().selected));
        }
    }
}

fn draw_line(model: &Model, row: Rect, line: &DigestLine, canvas: &mut Canvas) {
    let theme = model.theme();
    let (indent, text_style) = match line.kind {
        LineKind::Heading => (0, &theme.accent),
        LineKind::Urgent => (1, &theme.bad),
        LineKind::Agent => (1, &theme.strong),
        LineKind::Entry => (1, &theme.text),
        LineKind::Note => (0, &theme.dim),
    };
    let mut x = row.x + 1 + indent;
    if let Some(at) = line.at_ms.filter(|_| row.width >= TIME_WIDTH) {
        let time = clock(model, at);
        x = canvas.put(x, row.y, row.right(), &format!("{time}  "), &theme.dim);
    }
    canvas.put_cut(x, row.y, row.right().saturating_sub(1), &one_line(&line.text), text_style);
}
