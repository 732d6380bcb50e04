//! The offer to restore processes.

use std::collections::BTreeSet;

use patterm_wire::follow::ProcessInfo;
use patterm_wire::restore::{EndCause, RestoreMode, RestoreOffer};

use super::style;
use crate::canvas::{Canvas, Rect};
use crate::list::one_line;
use crate::model::{Mode, Model};

/// Rows in addition to the processes: the frame, what happened, the keys, and blank rows.
const OTHER_ROWS: u16 = 6;

/// Columns for the names.
const NAME_COLUMNS: u16 = 20;

fn room(model: &Model) -> Rect {
    let area = Rect::new(0, 0, model.width, model.height - 1);
    let width = area.width.saturating_sub(6).clamp(40.min(area.width), 90);
    let height = (model.offered().len() as u16).saturating_add(OTHER_ROWS).min(area.height);
    area.middle(width, height)
}

/// The area of the processes; on a small terminal the other rows are left out.
fn rows(model: &Model) -> Rect {
    let inner = room(model).inner();
    let (_, below) = inner.cut_top(if inner.height > 4 { 2 } else { 0 });
    Rect { height: below.height.saturating_sub(if inner.height > 4 { 2 } else { 0 }), ..below }
}

fn first_shown(chosen: usize, height: u16, count: usize) -> usize {
    let height = usize::from(height);
    (chosen + 1).saturating_sub(height).min(count.saturating_sub(height))
}

/// The process at a position.
pub(crate) fn offer_row(model: &Model, x: u16, y: u16) -> Option<usize> {
    let Mode::Restore { chosen, .. } = &model.mode else { return None };
    let rows = rows(model);
    let count = model.offered().len();
    let at = first_shown(*chosen, rows.height, count) + usize::from(y.checked_sub(rows.y)?);
    (rows.contains(x, y) && at < count).then_some(at)
}

pub(super) fn draw(model: &Model, chosen: usize, left_out: &BTreeSet<String>, canvas: &mut Canvas) {
    let room = room(model);
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, "restore processes?", &model.theme().accent);
    let (inner, rows) = (room.inner(), rows(model));
    let offered = model.offered();
    if rows.y > inner.y {
        // The most recent event: some processes may be left from an earlier one.
        let last = offered.iter().map(|(.., offer)| offer);
        let last = last.max_by_key(|offer| offer.at.unwrap_or(u64::MAX));
        let happened = last.map(|offer| happened(offer, model.now));
        let text = happened.unwrap_or_default();
        canvas.put_cut(inner.x + 1, inner.y, inner.right(), &text, &model.theme().text);
        let keys = "enter restore   space leave out   esc later   N never";
        canvas.put_cut(inner.x + 1, inner.bottom() - 1, inner.right(), keys, &model.theme().accent);
    }
    let first = first_shown(chosen, rows.height, offered.len());
    let shown = offered.iter().enumerate().skip(first).take(usize::from(rows.height));
    for (line, (at, (depth, process, offer))) in shown.enumerate() {
        let row = Rect { y: rows.y + line as u16, height: 1, ..rows };
        draw_one(model, row, (*depth, process, offer), left_out.contains(&process.id), canvas);
        if at == chosen {
            canvas.restyle(row, |style| style::select(style, &model.theme().selected));
        }
    }
}

fn draw_one(
    model: &Model,
    row: Rect,
    (depth, process, offer): (usize, &ProcessInfo, &RestoreOffer),
    left_out: bool,
    canvas: &mut Canvas,
) {
    let mark = match (&offer.how, left_out) {
        (RestoreMode::Not, _) => " ✗ ",
        (_, true) => "[ ]",
        (_, false) => "[x]",
    };
    let x = canvas.put(row.x + 1, row.y, row.right(), mark, &model.theme().accent);
    let name = format!("{}{} {}", "  ".repeat(depth), style::kind(process), process.name);
    let edge = (x + 1 + NAME_COLUMNS).min(row.right());
    canvas.put_cut(x + 1, row.y, edge, &name, &model.theme().text);
    canvas.put_cut(edge + 1, row.y, row.right(), &how(offer), &model.theme().dim);
}

fn how(offer: &RestoreOffer) -> String {
    let how = match &offer.how {
        RestoreMode::Again => "starts again",
        RestoreMode::Resumed => "resumes its conversation",
        RestoreMode::NewConversation => "new conversation",
        RestoreMode::Not => "cannot be started",
        RestoreMode::Other(how) => &one_line(how),
    };
    let reason = offer.reason.as_ref().map(|reason| format!(": {}", one_line(reason)));
    format!("{how}{}", reason.unwrap_or_default())
}

/// What ended everything, and when.
fn happened(offer: &RestoreOffer, now: u64) -> String {
    let what = match &offer.cause {
        EndCause::Kill => "`patterm kill` ended everything",
        EndCause::Signal => "A signal ended everything",
        EndCause::Reboot => "The machine was rebooted",
        EndCause::Lost => "The server and its keeper were killed",
        EndCause::Other(cause) => &format!("Everything ended ({})", one_line(cause)),
    };
    let when = offer.at.map(|at| ago(now.saturating_sub(at))).unwrap_or_default();
    format!("{what}{when}. These were running:")
}

/// How long ago something was.
fn ago(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => " just now".to_owned(),
        1..60 => format!(" {minutes} min ago"),
        60..2880 => format!(" {} h ago", minutes / 60),
        _ => format!(" {} days ago", minutes / 1440),
    }
}
