//! Panes: the screens of their programs, or their scrollback.

use patterm_screen::{Attributes, CursorShape, Screen, Size, Style, StyledRow};

use super::{past, style};
use crate::action::Action;
use crate::canvas::{Canvas, Caret, Rect};
use crate::layout::{Direction, PaneId};
use crate::model::{Mode, Model, Pane, is_alive};
use crate::page::origin;
use crate::scroll::Scroll;

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let (places, dividers) = model.places();
    for divider in dividers.iter().filter(|divider| divider.direction == Direction::Beside) {
        for y in divider.line.y..divider.line.bottom() {
            canvas.put(divider.line.x, y, divider.line.right(), "│", &model.theme().dim);
        }
    }
    for (id, room) in places {
        let Some(pane) = model.panes.get(&id) else { continue };
        let focused = id == model.focus;
        if model.has_titles() {
            title(model, id, pane, room.cut_top(1).0, canvas);
        }
        let body = model.body(room);
        match (past::bar_over(model, id), &pane.scroll) {
            (Some(bar), _) => past::draw_pane(model, bar, pane, body, canvas),
            (None, Some(scroll)) => rows(model, pane, scroll, body, canvas),
            (None, None) => screen(model, pane, body, canvas),
        }
        if focused && model.mode == Mode::Typing {
            canvas.caret = caret(pane, body);
        }
    }
}

/// A pane that shows its program's screen and nothing else: when the program prints, only the rows that change have to
/// be drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainPane {
    pub(crate) id: PaneId,
    pub(crate) body: Rect,
}

/// The panes that are drawn that way; none while something covers them.
pub(crate) fn plain_panes(model: &Model) -> Vec<PlainPane> {
    if model.mode != Mode::Typing || model.hung.is_some() || model.width < 2 || model.height < 2 {
        return Vec::new();
    }
    let places = model.places().0.into_iter();
    let plain = places.map(|(id, room)| PlainPane { id, body: model.body(room) });
    plain
        .filter(|plain| {
            model.panes.get(&plain.id).is_some_and(|pane| is_plain(model, pane, plain.body))
        })
        .collect()
}

/// Whether nothing but the rows of its screen is drawn in a pane.
fn is_plain(model: &Model, pane: &Pane, body: Rect) -> bool {
    let is_whole = pane.screen.size() == Size::new(body.height, body.width);
    let process = model.process(&pane.process);
    let has_problem = process.is_none_or(|process| process.output_problem.is_some());
    is_whole
        && pane.live
        && pane.scroll.is_none()
        && pane.refused.is_none()
        && !pane.screen.modes().reverse_video
        && !has_problem
        && process.is_some_and(is_alive)
}

/// Draws a row of a screen or of its history, in the colours that the program has set.
fn put_row(screen: &Screen, row: &StyledRow, at: (u16, u16), edge: u16, canvas: &mut Canvas) {
    let spans = screen.colours().apply(&row.spans, screen.size().columns);
    canvas.put_runs(at.0, at.1, edge, &spans);
}

/// Draws some rows of such a pane again, and the cursor.
pub(crate) fn redraw(model: &Model, plain: PlainPane, rows: &[u16], canvas: &mut Canvas) {
    let Some(pane) = model.panes.get(&plain.id) else { return };
    let body = plain.body;
    for row in rows {
        let y = body.y + row;
        canvas.blank(y, body.x, body.right());
        put_row(&pane.screen, &pane.screen.styled_row(*row), (body.x, y), body.right(), canvas);
    }
    if plain.id == model.focus {
        canvas.caret = caret(pane, body);
    }
}

fn title(model: &Model, id: PaneId, pane: &Pane, room: Rect, canvas: &mut Canvas) {
    for x in room.x..room.right() {
        canvas.put(x, room.y, room.right(), "─", &model.theme().dim);
    }
    let Some(process) = model.process(&pane.process) else { return };
    let (sign, word, state_style) = style::state(process, model.theme());
    let has_keys = id == model.focus || model.broadcast;
    let name_style = if has_keys { &model.theme().bar } else { &model.theme().text };
    let edge = room.right().saturating_sub(1);
    let x = canvas.put_cut(room.x + 1, room.y, edge, &format!(" {} ", process.name), name_style);
    match past::bar_over(model, id).and_then(|bar| bar.at_ms) {
        Some(at_ms) => {
            let text = format!(" ◂ {} ", past::time_of(model, at_ms));
            canvas.put_cut(x, room.y, edge, &text, &model.theme().accent);
        }
        None => {
            canvas.put_cut(x, room.y, edge, &format!(" {sign} {word} "), state_style);
        }
    }
}

fn screen(model: &Model, pane: &Pane, body: Rect, canvas: &mut Canvas) {
    draw_screen(model, &pane.screen, body, canvas);
    other_size(model, pane, body, canvas);
    if let Some(why) = &pane.refused {
        canvas.put_cut(body.x, body.y, body.right(), why, &model.theme().dim);
    }
    output_problem(model, pane, body, canvas);
    ended(model, pane, body, canvas);
}

/// Draws a screen, or the part of it around the cursor.
pub(super) fn draw_screen(model: &Model, screen: &Screen, body: Rect, canvas: &mut Canvas) {
    let size = screen.size();
    let reverse = screen.modes().reverse_video;
    let (left, top) = origin(screen, body.width, body.height);
    for row in 0..body.height.min(size.rows) {
        let styled = screen.styled_row(top + row);
        let edge = body.right().min(body.x + size.columns);
        let spans = screen.colours().apply(&styled.spans, size.columns);
        canvas.put_runs_from(left, (body.x, body.y + row), edge, &spans);
    }
    if reverse {
        canvas.restyle(body, flip);
    }
    // The screen is smaller: another view is, or this one was.
    for y in body.y..body.bottom() {
        for x in body.x..body.right() {
            if x >= body.x + size.columns || y >= body.y + size.rows {
                canvas.put(x, y, body.right(), "·", &model.theme().dim);
            }
        }
    }
}

/// A program has its new size within this time.
const RESIZE_MS: u64 = 500;

/// Shows in a corner that the program has the size of another terminal.
fn other_size(model: &Model, pane: &Pane, body: Rect, canvas: &mut Canvas) {
    let size = pane.screen.size();
    // The server may not have resized it yet.
    let is_new = model.now < pane.requested_at.saturating_add(RESIZE_MS);
    // The size of a program that has ended does not matter, and its row says something else.
    let has_ended = model.process(&pane.process).is_some_and(|process| !is_alive(process));
    if !pane.live || is_new || has_ended || (size.columns, size.rows) == (body.width, body.height) {
        return;
    }
    let text = format!(" {}×{}, for another terminal ", size.columns, size.rows);
    let width = crate::canvas::text_width(&text) as u16;
    let x = body.right().saturating_sub(width).max(body.x);
    let last = body.bottom().saturating_sub(1);
    // It must not cover the row that the user types in.
    let is_typed_in = caret(pane, body).is_some_and(|caret| caret.y == last);
    let y = if is_typed_in { body.y } else { last };
    canvas.put_cut(x, y, body.right(), &text, &model.theme().bar);
}

/// Shows in a corner that not all of the program's output is stored.
fn output_problem(model: &Model, pane: &Pane, body: Rect, canvas: &mut Canvas) {
    let process = model.process(&pane.process);
    let Some(problem) = process.and_then(|process| process.output_problem.as_ref()) else { return };
    // Only the beginning: the tree shows the rest, and the program needs the row.
    let text = format!(" ✗ {} ", problem.split(':').next().unwrap_or(problem));
    let width = crate::canvas::text_width(&text) as u16;
    let x = body.right().saturating_sub(width).max(body.x);
    canvas.put_cut(x, body.y, body.right(), &text, &model.theme().bad);
}

/// Shows on the last row that the program has ended.
fn ended(model: &Model, pane: &Pane, body: Rect, canvas: &mut Canvas) {
    let Some(process) = model.process(&pane.process).filter(|process| !is_alive(process)) else {
        return;
    };
    let (_, word, _) = style::state(process, model.theme());
    let press = |action| model.settings.keys.press(action);
    let (again, close) = (press(Action::Restart), press(Action::Close));
    let word = process.why_not_running.as_ref().unwrap_or(&word);
    let offer = match (process.waiting_for.is_empty(), process.runs) {
        (false, _) => format!("{} cancels its start", press(Action::Stop)),
        (true, 0) => format!("{again} starts it, {close} closes it"),
        (true, _) => format!("{again} restarts it, {close} closes it"),
    };
    let text = format!(" {word} · {offer} ");
    let y = body.bottom().saturating_sub(1);
    canvas.put_cut(body.x, y, body.right(), &text, &model.theme().bar);
}

fn rows(model: &Model, pane: &Pane, scroll: &Scroll, body: Rect, canvas: &mut Canvas) {
    let shown = scroll.rows.iter().enumerate().skip(scroll.top).take(usize::from(body.height));
    for (line, (row, styled)) in shown.enumerate() {
        let y = body.y + line as u16;
        put_row(&pane.screen, styled, (body.x, y), body.right(), canvas);
        let width = usize::from(body.width);
        let part = |left: usize, right: usize| {
            let (left, right) = (left.min(width) as u16, right.min(width) as u16);
            Rect::new(body.x + left, y, right.saturating_sub(left), 1)
        };
        for found in scroll.matches_in(row) {
            let is_current = (row, found.from) == scroll.cursor;
            canvas.restyle(part(found.from, found.to), |style| mark(style, model, is_current));
        }
        if let Some((left, right)) = scroll.selected_in(row) {
            canvas.restyle(part(left, right.saturating_add(1)), flip);
        }
    }
    let matches = match (scroll.search.is_empty(), scroll.match_number()) {
        (true, _) => String::new(),
        (false, Some(number)) => format!(" match {number} of {} ·", scroll.matches.len()),
        (false, None) if scroll.matches.len() == 1 => " 1 match ·".to_owned(),
        (false, None) => format!(" {} matches ·", scroll.matches.len()),
    };
    // A narrow pane needs the row for its text.
    let matches = if body.width < 40 { "" } else { &matches };
    let place = match scroll.match_number() {
        // Somebody who searches needs the matches more than the position.
        Some(number) if (24..40).contains(&body.width) && !scroll.search.is_empty() => {
            format!(" {number} of {} ", scroll.matches.len())
        }
        _ => {
            let count = scroll.count.map(|count| format!(" {count} ·")).unwrap_or_default();
            format!("{count}{matches} {}/{} ", scroll.cursor.0 + 1, scroll.rows.len())
        }
    };
    let place_width = crate::canvas::text_width(&place) as u16;
    let x = body.right().saturating_sub(place_width).max(body.x);
    canvas.put(x, body.y, body.right(), &place, &model.theme().bar);
}

/// Highlights a match; the one at the cursor more than the others.
fn mark(style: &mut Style, model: &Model, is_current: bool) {
    style.attributes = style.attributes | Attributes::UNDERLINE | Attributes::BOLD;
    style.foreground = model.theme().accent.foreground;
    if is_current {
        style.attributes = style.attributes | Attributes::INVERSE;
    }
}

fn flip(style: &mut Style) {
    let inverse = style.attributes.contains(Attributes::INVERSE);
    style.attributes = match inverse {
        true => style.attributes.without(Attributes::INVERSE),
        false => style.attributes | Attributes::INVERSE,
    };
}

fn caret(pane: &Pane, body: Rect) -> Option<Caret> {
    let (x, y, shape, blinking) = match &pane.scroll {
        Some(scroll) => {
            let row = scroll.cursor.0.saturating_sub(scroll.top) as u16;
            (scroll.cursor.1 as u16, row, CursorShape::Block, false)
        }
        None => {
            let cursor = pane.screen.cursor();
            if !cursor.visible || !pane.live {
                return None;
            }
            let (left, top) = pane.origin(body.width, body.height);
            let (x, y) = (cursor.column.saturating_sub(left), cursor.row.saturating_sub(top));
            (x, y, cursor.shape, cursor.blinking)
        }
    };
    let inside = x < body.width && y < body.height;
    inside.then(|| Caret { x: body.x + x, y: body.y + y, shape, blinking })
}
