//! Mouse events: for the program that requests them, otherwise for the TUI.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;

use super::{
    Effect, actions, dashboard, digest, logs, notify, overview, pages, panes, past, restore,
    scrolling, trust,
};
use crate::canvas::Rect;
use crate::layout::PaneId;
use crate::list;
use crate::model::{Click, Mode, Model, MouseGrab};
use crate::scroll::{Shape, link_in};
use crate::send;
use crate::view;
use patterm_screen::input::MouseEvent;
use patterm_wire::printable::is_active;

/// Handles a mouse event.
pub(super) fn take(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    if let Some(grab) = model.grab.clone() {
        drag(model, &grab, event, effects);
        return;
    }
    if model.mode != Mode::Typing && model.mode != Mode::Leader {
        over(model, event, effects);
        return;
    }
    if event.y + 1 == model.height {
        let page = view::page_at(model, event.x).filter(|_| event.pressed_left());
        page.into_iter().for_each(|number| pages::go_to_number(model, number, effects));
        return;
    }
    if model.tree_columns() > 0 && event.x <= model.tree_columns() {
        in_tree(model, event, effects);
        return;
    }
    let (places, dividers) = model.places();
    let line = dividers.into_iter().find(|divider| divider.line.contains(event.x, event.y));
    if let Some(line) = line.filter(|_| event.pressed_left()) {
        // The title of a lower pane is its divider; a click without dragging gives the pane the focus.
        model.grab = Some(MouseGrab::Line(line));
    }
    let place = places.into_iter().find(|(_, room)| room.contains(event.x, event.y));
    if let Some((id, room)) = place {
        in_pane(model, id, model.body(room), event, effects);
    }
}

fn in_tree(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    if !event.pressed_left() {
        return;
    }
    if event.x == model.tree_columns() {
        model.grab = Some(MouseGrab::TreeEdge);
        return;
    }
    let id = view::tree_row(model, event.y).map(|process| process.id.clone());
    if let Some(id) = id {
        panes::show(model, &id, effects);
    }
}

fn in_pane(
    model: &mut Model,
    id: PaneId,
    body: Rect,
    event: MouseEvent,
    effects: &mut Vec<Effect>,
) {
    let opens = model.focus == id || event.ctrl();
    if event.pressed_left() {
        panes::focus(model, id, effects);
    }
    let Some(pane) = model.panes.get(&id) else { return };
    let modes = pane.screen.modes();
    let inside = body.contains(event.x, event.y);
    let local = MouseEvent {
        x: event.x.saturating_sub(body.x),
        y: event.y.saturating_sub(body.y),
        ..event
    };
    let (left, top) = pane.origin(body.width, body.height);
    if inside && pane.scroll.is_none() && !event.shift() && send::wants(&event, &modes) {
        if event.pressed_left() {
            model.grab = Some(MouseGrab::Program(id));
        }
        let there = MouseEvent { x: local.x + left, y: local.y + top, ..local };
        effects.push(Effect::Send(id, send::mouse(&there, &modes)));
        return;
    }
    if let Some(rows) = event.wheel() {
        if pane.scroll.is_none() && modes.alternate_screen && modes.alternate_scroll {
            let code = if rows < 0 { KeyCode::Up } else { KeyCode::Down };
            let keys = Key::from(code).encode(&modes).repeat(3);
            effects.push(Effect::Send(id, keys));
        } else {
            wheel(model, id, rows, effects);
        }
        return;
    }
    if inside && event.pressed_left() && model.grab.is_none() {
        model.grab = Some(match count_click(model, id, (local.x, local.y)) {
            1 => MouseGrab::Selection(id, local.x, local.y, opens),
            count => {
                choose(model, id, (local.x, local.y), count, effects);
                MouseGrab::Chosen(id)
            }
        });
    }
}

/// The time within which clicks at the same place belong together.
const CLICK_MS: u64 = 400;

/// Counts the clicks at this place: 1, 2 or 3.
fn count_click(model: &mut Model, pane: PaneId, place: (u16, u16)) -> u8 {
    let now = model.now;
    let is_near = |last: &Click| {
        (last.pane, last.place) == (pane, place) && now.saturating_sub(last.at) < CLICK_MS
    };
    let count = model.click.filter(is_near).map_or(1, |last| last.count % 3 + 1);
    model.click = Some(Click { pane, place, at: now, count });
    count
}

/// Selects a word or a line.
fn choose(model: &mut Model, id: PaneId, (x, y): (u16, u16), count: u8, effects: &mut Vec<Effect>) {
    scrolling::begin(model, id, effects);
    let scroll = model.panes.get_mut(&id).and_then(|pane| pane.scroll.as_mut());
    let Some(scroll) = scroll else { return };
    let row = scroll.top + usize::from(y);
    match count {
        2 => scroll.select_word((row, usize::from(x))),
        _ => scroll.select_line(row),
    }
}

/// Opens the link at a place of a pane, if there is one.
fn open_link(model: &mut Model, id: PaneId, (x, y): (u16, u16), effects: &mut Vec<Effect>) {
    let Some(pane) = model.panes.get(&id) else { return };
    let column = usize::from(x);
    let link = match &pane.scroll {
        Some(scroll) => scroll.link_at((scroll.top + usize::from(y), column)).map(str::to_owned),
        None if y >= pane.screen.size().rows => None,
        None => link_in(&pane.screen.styled_row(y), column).map(str::to_owned),
    };
    let Some(link) = link else { return };
    // Anything else could start a program with the user's rights.
    let is_web = link.starts_with("https://") || link.starts_with("http://");
    match is_web && !link.chars().any(is_active) {
        true => {
            notify(model, &format!("opening {link}"), false);
            effects.push(Effect::OpenLink(link));
        }
        false => notify(model, &format!("only web links are opened, not {link}"), true),
    }
}

/// Scrolls a pane; at the end, scrolling is over.
fn wheel(model: &mut Model, id: PaneId, rows: i32, effects: &mut Vec<Effect>) {
    let scrolling = model.panes.get(&id).is_some_and(|pane| pane.scroll.is_some());
    if !scrolling && rows > 0 {
        return;
    }
    scrolling::begin(model, id, effects);
    let Some(pane) = model.panes.get_mut(&id) else { return };
    if let Some(scroll) = &mut pane.scroll {
        scroll.shift(rows as isize);
        if rows > 0 && scroll.at_end() && scroll.anchor.is_none() {
            pane.scroll = None;
        }
    }
}

/// Drags something until the button is released.
fn drag(model: &mut Model, grab: &MouseGrab, event: MouseEvent, effects: &mut Vec<Effect>) {
    if event.released {
        model.grab = None;
    }
    match grab {
        MouseGrab::TreeEdge => {
            model.tree_width = Some(event.x.max(1));
            panes::fit(model, effects);
        }
        MouseGrab::Line(divider) => {
            if let Some(layout) = &mut model.layout {
                layout.move_line(divider, event.x, event.y);
            }
            panes::fit(model, effects);
        }
        MouseGrab::Program(id) => {
            let (place, pane) = (body_of(model, *id), model.panes.get(id));
            if let (Some(body), Some(pane)) = (place, pane) {
                let modes = pane.screen.modes();
                let x = event.x.clamp(body.x, body.right().saturating_sub(1)) - body.x;
                let y = event.y.clamp(body.y, body.bottom().saturating_sub(1)) - body.y;
                if send::wants(&event, &modes) {
                    let (left, top) = pane.origin(body.width, body.height);
                    let local = MouseEvent { x: x + left, y: y + top, ..event };
                    effects.push(Effect::Send(*id, send::mouse(&local, &modes)));
                }
            }
        }
        MouseGrab::Selection(id, x, y, opens) => {
            select(model, *id, (*x, *y), *opens, event, effects);
        }
        MouseGrab::Chosen(id) => {
            let pane = model.panes.get_mut(id).filter(|_| event.released);
            if let Some(scroll) = pane.and_then(|pane| pane.scroll.take()) {
                scrolling::copy(model, &scroll, effects);
            }
        }
    }
}

fn body_of(model: &Model, id: PaneId) -> Option<Rect> {
    let (places, _) = model.places();
    let (_, room) = places.into_iter().find(|(pane, _)| *pane == id)?;
    Some(model.body(room))
}

/// Selects from where the button was pressed; releasing it copies the selection.
fn select(
    model: &mut Model,
    id: PaneId,
    from: (u16, u16),
    opens: bool,
    event: MouseEvent,
    effects: &mut Vec<Effect>,
) {
    let Some(body) = body_of(model, id) else { return };
    let here = (event.x.saturating_sub(body.x), event.y.saturating_sub(body.y));
    if here == from && event.released {
        if opens {
            open_link(model, id, here, effects);
        }
        return;
    }
    let was = model.panes.get(&id).is_some_and(|pane| pane.scroll.is_some());
    scrolling::begin(model, id, effects);
    let Some(pane) = model.panes.get_mut(&id) else { return };
    let Some(scroll) = &mut pane.scroll else { return };
    let place = |(x, y): (u16, u16)| (scroll.top + usize::from(y), usize::from(x));
    let (begin, end) = (place(from), place(here));
    // With alt, a block.
    scroll.shape = if event.alt() { Shape::Block } else { Shape::Text };
    if !was || scroll.anchor.is_none() {
        scroll.anchor = Some(begin);
    }
    scroll.cursor = (end.0.min(scroll.rows.len().saturating_sub(1)), end.1);
    if event.y < body.y {
        scroll.shift(-1);
    } else if event.y >= body.bottom() {
        scroll.shift(1);
    }
    if event.released
        && let Some(scroll) = pane.scroll.take()
    {
        scrolling::copy(model, &scroll, effects);
    }
}

/// The mouse over a dialog: a click chooses, the wheel scrolls, a click outside closes it.
fn over(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    if matches!(model.mode, Mode::Restore { .. }) {
        restore::click(model, event);
        return;
    }
    if let Mode::Overview(place) = model.mode.clone() {
        return overview::mouse(model, &place, event, effects);
    }
    if matches!(model.mode, Mode::Answer(_)) {
        return;
    }
    if matches!(model.mode, Mode::Digest(_)) {
        return digest::mouse(model, event, effects);
    }
    if matches!(model.mode, Mode::Dashboard { .. }) {
        return dashboard::mouse(model, event, effects);
    }
    if matches!(model.mode, Mode::Trust(_)) {
        return trust::wheel(model, event.wheel().unwrap_or(0));
    }
    if model.mode == Mode::Past {
        return past::mouse(model, event, effects);
    }
    if model.mode == Mode::Logs {
        return logs::wheel(model, event.wheel().unwrap_or(0) as isize);
    }
    if let Some(rows) = event.wheel() {
        let last = view::last_top(model);
        if let Mode::Text { top, .. } | Mode::Pad { top, .. } | Mode::Help { top } = &mut model.mode
        {
            *top = top.saturating_add_signed(rows as isize).min(last);
        }
    }
    let Mode::List { kind, chosen, filter } = &model.mode else {
        if event.pressed_left() && !matches!(model.mode, Mode::Line { .. }) {
            model.mode = Mode::Typing;
        }
        return;
    };
    let (kind, chosen) = (*kind, *chosen);
    let count = list::items(model, kind, filter).len();
    if let Some(rows) = event.wheel() {
        let moved = chosen.saturating_add_signed(rows.signum() as isize);
        if let Mode::List { chosen, .. } = &mut model.mode {
            *chosen = moved.min(count.saturating_sub(1));
        }
    } else if event.pressed_left() {
        match view::list_row(model, event.x, event.y) {
            Some(at) if at < count => actions::choose(model, kind, at, effects),
            Some(_) => {}
            None => model.mode = Mode::Typing,
        }
    }
}
