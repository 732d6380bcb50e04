//! Restoring processes after everything was ended: the user is asked once.

use std::collections::BTreeSet;

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::restore::{Restore, RestoreMode, RestoreRequest, RestoreResult, RestoredProcess};

use super::{CallPurpose, Effect, keyboard, notify, panes};
use crate::action::{Action, typed};
use crate::list::one_line;
use crate::model::{Mode, Model, is_alive};
use crate::view;
use patterm_screen::input::MouseEvent;

/// After connecting to a server: shows what it offers, unless the user has postponed it.
pub(super) fn offer(model: &mut Model) {
    let is_new = |(_, process, _): &(_, &patterm_wire::follow::ProcessInfo, _)| {
        !model.postponed.contains(&process.id)
    };
    // Not while the user is typing, since a key would decide; the status bar shows it, too.
    let is_free = model.mode == Mode::Typing && !keyboard::typed_recently(model);
    if is_free && model.offered().iter().any(is_new) {
        open(model);
    }
}

/// Opens the list of processes that can be restored.
pub(super) fn open(model: &mut Model) {
    match model.offered().is_empty() {
        true => notify(model, "nothing to restore", false),
        false => model.mode = Mode::Restore { chosen: 0, left_out: BTreeSet::new() },
    }
}

/// The offer may have changed, since others can decide, too.
pub(super) fn refresh(model: &mut Model) {
    let offered: Vec<String> =
        model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.postponed.retain(|id| offered.contains(id));
    let count = offered.len();
    if let Mode::Restore { chosen, .. } = &mut model.mode {
        *chosen = (*chosen).min(count.saturating_sub(1));
        if count == 0 {
            // The next key was meant for the list; it closes this text.
            let text = "someone else has already decided".to_owned();
            model.mode = Mode::Text { title: "restore".to_owned(), text, top: 0 };
        }
    }
}

/// A key while the list is open.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let last = model.offered().len().saturating_sub(1);
    let Mode::Restore { chosen, .. } = &mut model.mode else { return };
    match key.code {
        // Not a key that somebody who expects a shell types by accident.
        KeyCode::Char(character) if typed(character, key.shift) == 'N' => decline(model, effects),
        KeyCode::Escape | KeyCode::Char('n') => postpone(model),
        KeyCode::Char('c') if key.ctrl => postpone(model),
        KeyCode::Enter | KeyCode::Char('y') => accept(model, effects),
        KeyCode::Char(' ') => {
            let at = *chosen;
            toggle(model, at);
        }
        KeyCode::Up | KeyCode::Char('k') => *chosen = chosen.checked_sub(1).unwrap_or(last),
        KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => {
            *chosen = if *chosen >= last { 0 } else { *chosen + 1 };
        }
        _ => {}
    }
}

/// A click on a process; clicks elsewhere do nothing.
pub(super) fn click(model: &mut Model, event: MouseEvent) {
    let row = view::offer_row(model, event.x, event.y);
    if let Some(at) = row.filter(|_| event.pressed_left()) {
        toggle(model, at);
    }
}

fn toggle(model: &mut Model, at: usize) {
    // A process that cannot be started cannot be chosen.
    let offered = model.offered();
    let startable = offered.get(at).filter(|(_, _, offer)| offer.how != RestoreMode::Not);
    let Some(id) = startable.map(|(_, process, _)| process.id.clone()) else { return };
    let Mode::Restore { chosen, left_out } = &mut model.mode else { return };
    *chosen = at;
    if !left_out.remove(&id) {
        left_out.insert(id);
    }
}

/// Not now: it stays in the palette, and the next `patterm` asks again.
fn postpone(model: &mut Model) {
    model.postponed = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.mode = Mode::Typing;
    let palette = model.settings.keys.press(Action::Palette);
    let text = format!("postponed; it is in the palette ({palette}), and `patterm` asks again");
    notify(model, &text, false);
}

/// Declines for good: nothing is restored, and the question is not asked again.
fn decline(model: &mut Model, effects: &mut Vec<Effect>) {
    let ids = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.mode = Mode::Typing;
    let request = RestoreRequest { ids: Some(ids), decline: true };
    effects.push(Effect::call::<Restore>(&request, CallPurpose::Nothing));
}

/// Restores the chosen processes; the user is not asked about the others again. Those that cannot be started
/// may be restored later.
fn accept(model: &mut Model, effects: &mut Vec<Effect>) {
    let Mode::Restore { left_out, .. } = std::mem::take(&mut model.mode) else { return };
    let startable: Vec<String> = model
        .offered()
        .iter()
        .filter(|(_, _, offer)| offer.how != RestoreMode::Not)
        .map(|(_, process, _)| process.id.clone())
        .collect();
    let (left, chosen): (Vec<_>, Vec<_>) =
        startable.into_iter().partition(|id| left_out.contains(id));
    model.postponed = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    if !left.is_empty() {
        let request = RestoreRequest { ids: Some(left), decline: true };
        effects.push(Effect::call::<Restore>(&request, CallPurpose::Nothing));
    }
    if !chosen.is_empty() {
        notify(model, &format!("restoring {}…", count(chosen.len())), false);
        keyboard::note_request(model);
        let request = RestoreRequest { ids: Some(chosen), decline: false };
        effects.push(Effect::call::<Restore>(&request, CallPurpose::Restore));
    }
}

fn count(processes: usize) -> String {
    match processes {
        1 => "1 process".to_owned(),
        many => format!("{many} processes"),
    }
}

/// The result: a notice if everything went well, otherwise a list.
pub(super) fn done(model: &mut Model, result: &RestoreResult, effects: &mut Vec<Effect>) {
    let processes = &result.processes;
    let restored: Vec<&RestoredProcess> =
        processes.iter().filter(|process| process.how != RestoreMode::Not).collect();
    let new = restored.iter().filter(|process| process.how == RestoreMode::NewConversation).count();
    let more = if new > 0 { format!(", {new} with a new conversation") } else { String::new() };
    notify(model, &format!("restored {}{more}", count(restored.len())), false);
    // The offer has already said which agents start a new conversation.
    let late = keyboard::is_late(model);
    let needs_list = |process: &RestoredProcess| {
        process.reason.is_some() && process.how != RestoreMode::NewConversation
    };
    if !late && processes.iter().any(needs_list) {
        let line = |process: &RestoredProcess| one_line(&process.to_string());
        let lines: Vec<String> = processes.iter().map(line).collect();
        let (title, text) = ("restored".to_owned(), lines.join("\n"));
        model.mode = Mode::Text { title, text, top: 0 };
    }
    // Show a process that is running.
    let shown = model.selected().map(|process| process.id.clone());
    let is_restored = |id: String| restored.iter().any(|process| process.process_id == id);
    if !shown.is_some_and(is_restored)
        && !late
        && !model.selected().is_some_and(is_alive)
        && let Some(first) = restored.first()
    {
        panes::show(model, &first.process_id, effects);
    }
}
