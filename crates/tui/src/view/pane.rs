//! Panes: the screens of their programs, or their scrollback.

use patterm_screen::{Attributes, CursorShape, Style};

use super::style;
use crate::action::Action;
use crate::canvas::{Canvas, Caret, Rect};
use crate::layout::Direction;
use crate::model::{Mode, Model, Pane, is_alive};
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
            title(model, pane, room.cut_top(1).0, focused, canvas);
        }
        let body = model.body(room);
        match &pane.scroll {
            Some(scroll) => rows(model, scroll, body, canvas),
            None => screen(model, pane, body, canvas),
        }
        if focused && model.mode == Mode::Typing {
            canvas.caret = caret(pane, body);
        }
    }
}

fn title(model: &Model, pane: &Pane, room: Rect, focused: bool, canvas: &mut Canvas) {
    for x in room.x..room.right() {
        canvas.put(x, room.y, room.right(), "─", &model.theme().dim);
    }
    let Some(process) = model.process(&pane.process) else { return };
    let (sign, word, state_style) = style::state(process, model.theme());
    let name_style = if focused { &model.theme().bar } else { &model.theme().text };
    let edge = room.right().saturating_sub(1);
    let x = canvas.put_cut(room.x + 1, room.y, edge, &format!(" {} ", process.name), name_style);
    canvas.put_cut(x, room.y, edge, &format!(" {sign} {word} "), state_style);
}

fn screen(model: &Model, pane: &Pane, body: Rect, canvas: &mut Canvas) {
    let size = pane.screen.size();
    let reverse = pane.screen.modes().reverse_video;
    for row in 0..body.height.min(size.rows) {
        let styled = pane.screen.styled_row(row);
        let edge = body.right().min(body.x + size.columns);
        canvas.put_runs(body.x, body.y + row, edge, &styled.spans);
    }
    if reverse {
        canvas.restyle(body, flip);
    }
    // The screen is smaller because of another view.
    for y in body.y..body.bottom() {
        for x in body.x..body.right() {
            if x >= body.x + size.columns || y >= body.y + size.rows {
                canvas.put(x, y, body.right(), "·", &model.theme().dim);
            }
        }
    }
    if let Some(why) = &pane.refused {
        canvas.put_cut(body.x, body.y, body.right(), why, &model.theme().dim);
    }
    output_problem(model, pane, body, canvas);
    ended(model, pane, body, canvas);
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
    let text = format!(" {word} · {again} restarts it, {close} closes it ");
    let y = body.bottom().saturating_sub(1);
    canvas.put_cut(body.x, y, body.right(), &text, &model.theme().bar);
}

fn rows(model: &Model, scroll: &Scroll, body: Rect, canvas: &mut Canvas) {
    let selection = scroll.selection();
    let shown = scroll.rows.iter().enumerate().skip(scroll.top).take(usize::from(body.height));
    for (line, (row, styled)) in shown.enumerate() {
        let y = body.y + line as u16;
        canvas.put_runs(body.x, y, body.right(), &styled.spans);
        mark_matches(scroll, &styled.text(), Rect { y, height: 1, ..body }, canvas);
        let Some((from, to)) = selection else { continue };
        if (from.0..=to.0).contains(&row) {
            let left = if row == from.0 { from.1 } else { 0 };
            let right = if row == to.0 { to.1.saturating_add(1) } else { usize::MAX };
            let width = usize::from(body.width);
            let (left, right) = (left.min(width) as u16, right.min(width) as u16);
            let part = Rect::new(body.x + left, y, right.saturating_sub(left), 1);
            canvas.restyle(part, flip);
        }
    }
    let place = format!(" {}/{} ", scroll.cursor.0 + 1, scroll.rows.len());
    let x = body.right().saturating_sub(place.len() as u16).max(body.x);
    canvas.put(x, body.y, body.right(), &place, &model.theme().bar);
}

/// Underlines search matches.
fn mark_matches(scroll: &Scroll, text: &str, room: Rect, canvas: &mut Canvas) {
    let (wanted, text) = (scroll.search.to_lowercase(), text.to_lowercase());
    if wanted.is_empty() {
        return;
    }
    for (at, found) in text.match_indices(&wanted) {
        let x = room.x + crate::canvas::text_width(&text[..at]) as u16;
        let width = crate::canvas::text_width(found) as u16;
        let width = width.min(room.right().saturating_sub(x));
        canvas.restyle(Rect::new(x, room.y, width, 1), |style| {
            style.attributes = style.attributes | Attributes::UNDERLINE | Attributes::BOLD;
        });
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
            (cursor.column, cursor.row, cursor.shape, cursor.blinking)
        }
    };
    let inside = x < body.width && y < body.height;
    inside.then(|| Caret { x: body.x + x, y: body.y + y, shape, blinking })
}
