//! Bells and notifications of programs. They are not passed on directly: patterm composes its own, at a limited
//! rate, and shows notifications only while the user's terminal does not have the focus.

use patterm_screen::Notice;

use super::Effect;
use crate::layout::PaneId;
use crate::model::Model;

/// The pause between two bells.
const RING_MS: u64 = 500;

/// The pause between two notifications.
const NOTIFY_MS: u64 = 2_000;

/// Handles bells and notifications of a pane's program.
pub(super) fn take(model: &mut Model, id: PaneId, notices: Vec<Notice>, effects: &mut Vec<Effect>) {
    for notice in notices {
        match notice {
            Notice::Bell => bell(model, id, effects),
            Notice::Notification { title, body } => {
                let parts = [title, body].into_iter().filter(|part| !part.is_empty());
                notification(model, id, &parts.collect::<Vec<_>>().join(": "), effects);
            }
            _ => {}
        }
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

fn notification(model: &mut Model, id: PaneId, text: &str, effects: &mut Vec<Effect>) {
    let process = model.panes.get(&id).and_then(|pane| model.process(&pane.process));
    let Some(name) = process.map(|process| process.name.clone()) else { return };
    if model.focused || model.now.saturating_sub(model.last_notification) < NOTIFY_MS {
        return;
    }
    model.last_notification = model.now;
    effects.push(Effect::Notify(format!("{name}: {text}")));
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
