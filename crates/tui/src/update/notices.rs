//! Bells and notifications of programs. They are not passed on directly: patterm composes its own, at a limited
//! rate, and shows notifications only while the user's terminal does not have the focus.

use patterm_screen::Notice as ProgramNotice;
use patterm_wire::follow::ProjectSnapshot;

use super::Effect;
use crate::layout::PaneId;
use crate::model::Model;

/// The pause between two bells.
const RING_MS: u64 = 500;

/// The pause between two notifications.
const NOTIFY_MS: u64 = 2_000;

/// Handles the bells of a pane's program. Its notifications come with the server's snapshots, like those of programs
/// that no pane shows.
pub(super) fn take_bells(
    model: &mut Model,
    id: PaneId,
    notices: Vec<ProgramNotice>,
    effects: &mut Vec<Effect>,
) {
    if notices.contains(&ProgramNotice::Bell) {
        bell(model, id, effects);
    }
}

/// Rings the bell of the pane with the focus; other processes are marked.
fn bell(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if id == model.focus {
        if model.now.saturating_sub(model.last_bell) >= RING_MS {
            model.last_bell = model.now;
            effects.push(Effect::Ring);
        }
    } else if let Some(pane) = model.panes.get(&id) {
        model.bells.insert(pane.process.clone());
    }
}

/// The notifications in a snapshot that are new: the process, and the text. What was notified before this terminal was
/// attached is not.
pub(super) fn new_notifications(model: &Model, next: &ProjectSnapshot) -> Vec<(String, String)> {
    if !model.has_snapshot {
        return Vec::new();
    }
    let new = next.processes.iter().filter_map(|process| {
        let notification = process.notification.as_ref()?;
        let before = model.process(&process.id).and_then(|known| known.notification.as_ref());
        (before != Some(notification)).then(|| (process.id.clone(), notification.text.clone()))
    });
    new.collect()
}

/// Tells the user about notifications of programs: on the desktop if the terminal does not have the focus, otherwise
/// at the bottom, with a mark in the tree. The program in front needs neither.
pub(super) fn notify(model: &mut Model, new: Vec<(String, String)>, effects: &mut Vec<Effect>) {
    for (id, text) in new {
        let Some(process) = model.process(&id) else { continue };
        let (name, number) = (process.name.clone(), id.trim_start_matches('p').to_owned());
        let in_front = model.selected().is_some_and(|selected| selected.id == id);
        if model.focused && in_front {
            continue;
        }
        if !in_front {
            model.bells.insert(id);
        }
        if model.now.saturating_sub(model.last_notification) < NOTIFY_MS {
            continue;
        }
        match model.focused {
            false => effects.push(Effect::Notify(format!("{name}: {text}"))),
            // Other texts, in particular errors, are more important.
            true if model.notice.is_none() => {
                super::notify(model, &format!("{number} {name} notifies you: {text}"), false);
            }
            true => continue,
        }
        model.last_notification = model.now;
    }
}

/// Removes the marks of the selected process and of closed ones.
pub(super) fn forget_bells(model: &mut Model) {
    if model.bells.is_empty() {
        return;
    }
    let looked_at = model.selected().map(|process| process.id.clone());
    let mut bells = std::mem::take(&mut model.bells);
    bells.retain(|id| Some(id) != looked_at.as_ref() && model.process(id).is_some());
    model.bells = bells;
}
