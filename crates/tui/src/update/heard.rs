//! What programs tell their terminal beside text: bells and notifications. None of it passes on as it
//! came: the person is told in our words, seldom enough, and notified only where they look elsewhere.

use patterm_screen::Notice;

use super::Effect;
use crate::layout::PaneId;
use crate::model::Model;

/// Between two bells that are heard: a flood of them is one noise.
const RING_MS: u64 = 500;

/// Between two notifications that programs ask for.
const NOTIFY_MS: u64 = 2_000;

/// Takes what a pane's program told.
pub(super) fn take(model: &mut Model, id: PaneId, notices: Vec<Notice>, effects: &mut Vec<Effect>) {
    for notice in notices {
        match notice {
            Notice::Bell => bell(model, id, effects),
            Notice::Notification { title, body } => {
                let words = [title, body].into_iter().filter(|part| !part.is_empty());
                notification(model, id, &words.collect::<Vec<_>>().join(": "), effects);
            }
            _ => {}
        }
    }
}

/// The bell of the pane with the focus is rung; another one's process is marked.
fn bell(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if id == model.focus {
        if model.now.saturating_sub(model.rang) >= RING_MS {
            model.rang = model.now;
            effects.push(Effect::Ring);
        }
    } else if let Some(pane) = model.panes.get(&id) {
        model.bells.insert(pane.process.clone());
    }
}

fn notification(model: &mut Model, id: PaneId, words: &str, effects: &mut Vec<Effect>) {
    let process = model.panes.get(&id).and_then(|pane| model.process(&pane.process));
    let Some(name) = process.map(|process| process.name.clone()) else { return };
    if model.focused || model.now.saturating_sub(model.notified) < NOTIFY_MS {
        return;
    }
    model.notified = model.now;
    effects.push(Effect::Notify(format!("{name}: {words}")));
}

/// Who is looked at, or gone, needs no mark.
pub(super) fn forget(model: &mut Model) {
    if model.bells.is_empty() {
        return;
    }
    let looked_at = model.selected().map(|process| process.id.clone());
    let mut bells = std::mem::take(&mut model.bells);
    bells.retain(|id| Some(id) != looked_at.as_ref() && model.process(id).is_some());
    model.bells = bells;
}
