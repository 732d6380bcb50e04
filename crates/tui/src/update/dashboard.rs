//! The dashboard: keys, the mouse, and the measurements, which are requested only while it is open.

use patterm_screen::Key;
use patterm_screen::input::MouseEvent;
use patterm_screen::keys::KeyCode;
use patterm_wire::usage::{Usage, UsageRequest, UsageResult};

use super::{CallPurpose, Effect, actions, panes};
use crate::action::{Action, typed};
use crate::model::{Confirmation, Mode, Model};
use crate::table;
use crate::view::{self, DashboardPlace};

/// The rows that page up and page down move by.
const PAGE_ROWS: isize = 10;

/// Opens it with the process of the pane with the focus chosen.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    model.dashboard.open(model.selected().map(|process| process.id.clone()));
    model.mode = Mode::Dashboard { confirmation: None, leader: false };
    request(model, effects);
}

/// Whether it is open.
pub(crate) fn is_open(model: &Model) -> bool {
    matches!(model.mode, Mode::Dashboard { .. })
}

/// Requests the next measurement.
pub(super) fn request(model: &mut Model, effects: &mut Vec<Effect>) {
    if is_open(model) {
        let request = UsageRequest { ports: model.dashboard.next_request() };
        effects.push(Effect::call::<Usage>(&request, CallPurpose::Usage));
    }
}

/// A measurement has arrived.
pub(super) fn measured(model: &mut Model, result: UsageResult) {
    if is_open(model) {
        model.dashboard.add(result);
    }
}

/// A key while it is open.
pub(super) fn key(
    model: &mut Model,
    (confirmation, leader): (Option<Confirmation>, bool),
    key: &Key,
    effects: &mut Vec<Effect>,
) {
    model.mode = Mode::Dashboard { confirmation: None, leader: false };
    if let Some(confirmation) = confirmation {
        if matches!(key.code, KeyCode::Char('y') | KeyCode::Enter) {
            actions::confirmed(model, confirmation, effects);
            model.mode = Mode::Dashboard { confirmation: None, leader: false };
        }
        return;
    }
    if model.settings.keys.is_leader(key) {
        model.mode = Mode::Dashboard { confirmation: None, leader: !leader };
        return;
    }
    let action = model.settings.keys.after_leader(key);
    match action {
        Some(action @ (Action::Restart | Action::Stop | Action::Close)) => {
            act(model, action, effects)
        }
        Some(Action::Dashboard) => model.mode = Mode::Typing,
        Some(action) if leader => actions::act(model, action, effects),
        _ => navigate(model, key, effects),
    }
}

fn navigate(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    match key.code {
        KeyCode::Escape => model.mode = Mode::Typing,
        KeyCode::Char('q') => model.mode = Mode::Typing,
        KeyCode::Char('c') if key.ctrl => model.mode = Mode::Typing,
        KeyCode::Enter => show(model, effects),
        KeyCode::Up | KeyCode::Char('k') => choose(model, -1),
        KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => choose(model, 1),
        KeyCode::PageUp => choose(model, -PAGE_ROWS),
        KeyCode::PageDown => choose(model, PAGE_ROWS),
        KeyCode::Home => choose(model, isize::MIN),
        KeyCode::End => choose(model, isize::MAX),
        KeyCode::Left => model.dashboard.sort_beside(-1),
        KeyCode::Right => model.dashboard.sort_beside(1),
        KeyCode::Char(letter) if typed(letter, key.shift) == 'r' => {
            model.dashboard.descending = !model.dashboard.descending;
        }
        _ => {}
    }
}

/// Chooses the row that is this far from the present one.
fn choose(model: &mut Model, by: isize) {
    let rows = table::rows(model);
    let at = table::chosen(model, &rows).saturating_add_signed(by);
    let id = rows.get(at.min(rows.len().saturating_sub(1))).map(|process| process.id.clone());
    model.dashboard.chosen = id;
}

/// The id of the chosen process.
fn chosen(model: &Model) -> Option<String> {
    let rows = table::rows(model);
    rows.get(table::chosen(model, &rows)).map(|process| process.id.clone())
}

/// Closes the dashboard and shows the chosen process.
fn show(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(id) = chosen(model) {
        model.mode = Mode::Typing;
        panes::show(model, &id, effects);
    }
}

/// Starts, stops or closes the chosen process, and asks before it ends one that is running.
fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let Some(id) = chosen(model) else { return };
    let confirmation = actions::ask_to_confirm(model, &id, action, effects);
    model.mode = Mode::Dashboard { confirmation, leader: false };
}

/// The mouse: a click on a heading sorts, one on a row chooses it, one on the chosen row shows its process.
pub(super) fn mouse(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    if let Some(rows) = event.wheel() {
        return choose(model, rows.signum() as isize);
    }
    if !event.pressed_left() {
        return;
    }
    match view::dashboard_at(model, event.x, event.y) {
        Some(DashboardPlace::Heading(column)) => model.dashboard.sort_by(column),
        Some(DashboardPlace::Row(id)) if model.dashboard.chosen.as_ref() == Some(&id) => {
            show(model, effects);
        }
        Some(DashboardPlace::Row(id)) => model.dashboard.chosen = Some(id),
        None => {}
    }
}
