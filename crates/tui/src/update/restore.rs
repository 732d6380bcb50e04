//! What ran when everything was ended: the person is asked, once, whether to bring it back.

use std::collections::BTreeSet;

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::restore::{METHOD, RestoreMode, RestoreRequest, RestoreResult, RestoredProcess};
use serde_json::{Value, json};

use super::{Asked, Effect, keyboard, panes, tell};
use crate::action::{Action, typed};
use crate::model::{Mode, Model, is_alive};
use crate::view;
use patterm_screen::input::MouseEvent;

/// A server is seen for the first time: what it offers is shown, unless it was put off before.
pub(super) fn offer(model: &mut Model) {
    let is_new = |(_, process, _): &(_, &patterm_wire::follow::ProcessInfo, _)| {
        !model.put_off.contains(&process.id)
    };
    // Keys of somebody who types would decide; the status line says it too.
    let is_free = model.mode == Mode::Typing && !keyboard::typed_lately(model);
    if is_free && model.offered().iter().any(is_new) {
        open(model);
    }
}

/// Shows what can be restored.
pub(super) fn open(model: &mut Model) {
    match model.offered().is_empty() {
        true => tell(model, "nothing to restore", false),
        false => model.mode = Mode::Restore { chosen: 0, left_out: BTreeSet::new() },
    }
}

/// What is offered has changed: others decide too.
pub(super) fn follow(model: &mut Model) {
    let offered: Vec<String> =
        model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.put_off.retain(|id| offered.contains(id));
    let count = offered.len();
    if let Mode::Restore { chosen, .. } = &mut model.mode {
        *chosen = (*chosen).min(count.saturating_sub(1));
        if count == 0 {
            // The next key was meant for the list: it closes this.
            let text = "somebody else has decided".to_owned();
            model.mode = Mode::Text { title: "restore".to_owned(), text, top: 0 };
        }
    }
}

/// A key while it is shown.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let last = model.offered().len().saturating_sub(1);
    let Mode::Restore { chosen, .. } = &mut model.mode else { return };
    match key.code {
        // Nobody types it by accident, as one may who expects a shell.
        KeyCode::Char(character) if typed(character, key.shift) == 'N' => never(model, effects),
        KeyCode::Escape | KeyCode::Char('n') => later(model),
        KeyCode::Char('c') if key.ctrl => later(model),
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

/// A click on one of them; nothing beside it decides anything.
pub(super) fn click(model: &mut Model, event: MouseEvent) {
    let row = view::offer_row(model, event.x, event.y);
    if let Some(at) = row.filter(|_| event.pressed_left()) {
        toggle(model, at);
    }
}

fn toggle(model: &mut Model, at: usize) {
    // One that cannot be started is not a matter of choice.
    let offered = model.offered();
    let startable = offered.get(at).filter(|(_, _, offer)| offer.how != RestoreMode::Not);
    let Some(id) = startable.map(|(_, process, _)| process.id.clone()) else { return };
    let Mode::Restore { chosen, left_out } = &mut model.mode else { return };
    *chosen = at;
    if !left_out.remove(&id) {
        left_out.insert(id);
    }
}

/// Not now: it stays in the palette, and is asked again by the next `patterm`.
fn later(model: &mut Model) {
    model.put_off = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.mode = Mode::Typing;
    let palette = model.settings.keys.press(Action::Palette);
    let text = format!("put off; the palette ({palette}) has it, and `patterm` asks again");
    tell(model, &text, false);
}

/// Not at all: everything stays as it is, and nobody asks again.
fn never(model: &mut Model, effects: &mut Vec<Effect>) {
    let ids = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    model.mode = Mode::Typing;
    ask(RestoreRequest { ids: Some(ids), decline: true }, Asked::Nothing, effects);
}

/// What is not left out is restored; what is left out is not asked about again. What cannot be
/// started now may be later.
fn accept(model: &mut Model, effects: &mut Vec<Effect>) {
    let Mode::Restore { left_out, .. } = std::mem::take(&mut model.mode) else { return };
    let startable: Vec<String> = model
        .offered()
        .iter()
        .filter(|(_, _, offer)| offer.how != RestoreMode::Not)
        .map(|(_, process, _)| process.id.clone())
        .collect();
    let (left, back): (Vec<_>, Vec<_>) =
        startable.into_iter().partition(|id| left_out.contains(id));
    model.put_off = model.offered().iter().map(|(_, process, _)| process.id.clone()).collect();
    if !left.is_empty() {
        ask(RestoreRequest { ids: Some(left), decline: true }, Asked::Nothing, effects);
    }
    if !back.is_empty() {
        tell(model, &format!("bringing back {}…", back.len()), false);
        keyboard::asks(model);
        ask(RestoreRequest { ids: Some(back), decline: false }, Asked::Restore, effects);
    }
}

fn ask(wish: RestoreRequest, asked: Asked, effects: &mut Vec<Effect>) {
    let arguments = json!({"ids": wish.ids, "decline": wish.decline});
    effects.push(Effect::Call { tool: METHOD, arguments, asked });
}

/// What came of it: in a word where all went well, else on a sheet of its own.
pub(super) fn done(model: &mut Model, answer: Value, effects: &mut Vec<Effect>) {
    let Ok(RestoreResult { processes }) = serde_json::from_value::<RestoreResult>(answer) else {
        return;
    };
    let back: Vec<&RestoredProcess> =
        processes.iter().filter(|back| back.how != RestoreMode::Not).collect();
    let text = match back.len() {
        1 => "1 is back".to_owned(),
        count => format!("{count} are back"),
    };
    let anew = back.iter().filter(|back| back.how == RestoreMode::Anew).count();
    let more = if anew > 0 { format!(", {anew} with a new conversation") } else { String::new() };
    tell(model, &format!("{text}{more}"), false);
    // That an agent would begin anew was said before.
    let late = keyboard::comes_late(model);
    if !late && processes.iter().any(|back| back.reason.is_some() && back.how != RestoreMode::Anew)
    {
        let lines: Vec<String> = processes.iter().map(RestoredProcess::to_string).collect();
        let (title, text) = ("restored".to_owned(), lines.join("\n"));
        model.mode = Mode::Text { title, text, top: 0 };
    }
    // Something that runs is looked at.
    let shown = model.selected().map(|process| process.id.clone());
    let is_back = shown.is_some_and(|id| back.iter().any(|back| back.process_id == id));
    if !is_back
        && !late
        && !model.selected().is_some_and(is_alive)
        && let Some(first) = back.first()
    {
        panes::show(model, &first.process_id, effects);
    }
}
