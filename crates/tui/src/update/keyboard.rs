//! Only the user moves the keyboard focus. What others do (an agent that selects a process, a process that is
//! closed, a result that comes late) never moves it while the user is typing: the process is marked instead, or
//! keys are ignored until the user has noticed.

use patterm_wire::follow::Selection;

use super::{Effect, notify, panes};
use crate::model::{Mode, Model};

/// After this time without a key, the user is not typing.
pub(crate) const TYPING_MS: u64 = 5_000;

/// A result within this time is immediate: the user has not started anything else.
const AT_ONCE_MS: u64 = 1_000;

/// Handles new calls of `select_process`, and reports what was done about each.
pub(super) fn take_selections(model: &mut Model, effects: &mut Vec<Effect>) {
    let new: Vec<Selection> = model.snapshot.to_select.clone();
    for selection in new {
        if selection.number <= model.last_selection {
            continue;
        }
        model.last_selection = selection.number;
        let shown = !selection.mark_only || is_selected(model, &selection.process);
        let shown = shown && try_show(model, &selection.process, &selection.drafts, effects);
        if !shown {
            mark(model, &selection.process);
        }
        effects.push(Effect::AnswerSelection { number: selection.number, shown });
    }
}

/// Shows a process that somebody else selected, unless that would move the focus while the user is busy;
/// returns whether it is shown.
pub(super) fn try_show(
    model: &mut Model,
    id: &str,
    drafts: &[String],
    effects: &mut Vec<Effect>,
) -> bool {
    if model.process(id).is_none() {
        return false;
    }
    if is_selected(model, id) {
        return true;
    }
    let has_draft = model.selected().is_some_and(|process| drafts.contains(&process.id));
    if is_busy(model) || has_draft {
        return false;
    }
    panes::show(model, id, effects);
    true
}

fn is_selected(model: &Model, id: &str) -> bool {
    model.selected().is_some_and(|process| process.id == id)
}

/// Whether the user is typing, or in the middle of something that uses the keyboard.
pub(super) fn is_busy(model: &Model) -> bool {
    let scrolls = model.focused_pane().is_some_and(|pane| pane.scroll.is_some());
    typed_recently(model) || model.mode != Mode::Typing || scrolls || model.grab.is_some()
}

/// Whether the user has typed anything within the last seconds.
pub(super) fn typed_recently(model: &Model) -> bool {
    model.typed_at.is_some_and(|at| model.now.saturating_sub(at) < TYPING_MS)
}

/// Marks a process for the user; one key shows it.
pub(super) fn mark(model: &mut Model, id: &str) {
    let is_new = !model.marked.iter().any(|marked| marked == id);
    if is_new && model.process(id).is_some() {
        model.marked.push(id.to_owned());
    }
}

/// Shows the process that was marked last.
pub(super) fn go_to_marked(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.marked.pop() {
        Some(id) => panes::show(model, &id, effects),
        None => notify(model, "no process is marked", false),
    }
}

/// Removes the marks of the selected process and of closed ones.
pub(super) fn forget_marks(model: &mut Model) {
    let mut marked = std::mem::take(&mut model.marked);
    marked.retain(|id| !is_selected(model, id) && model.process(id).is_some());
    model.marked = marked;
}

/// The user requests something that takes a while.
pub(super) fn note_request(model: &mut Model) {
    model.requested_at = Some(model.now);
}

/// Whether a result comes too late to be shown: the user has typed into a pane since.
pub(super) fn is_late(model: &Model) -> bool {
    let at_once = model.requested_at.is_none_or(|at| model.now.saturating_sub(at) < AT_ONCE_MS);
    !at_once && model.sent_at > model.requested_at
}

/// Once the user has stopped typing, what comes next is meant for the pane that has the focus now.
pub(super) fn continue_after_pause(model: &mut Model) {
    if matches!(model.mode, Mode::Interrupted { .. }) && !typed_recently(model) {
        model.mode = Mode::Typing;
    }
}

/// The pane with the focus was removed, but not by the user. If the user was typing into it, the rest of the
/// input must not go to another process.
pub(super) fn focus_lost(model: &mut Model, name: &str) {
    let sent_recently = model.sent_at.is_some_and(|at| model.now.saturating_sub(at) < TYPING_MS);
    if sent_recently && model.mode == Mode::Typing {
        model.mode = Mode::Interrupted { name: name.to_owned(), ignored: 0 };
    }
}
