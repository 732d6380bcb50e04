//! Where the keyboard leads is the person's decision. What others do (an agent that wants a process
//! seen, a process that is closed, an answer that comes late) never moves it in the middle of a word:
//! the process is marked instead, or keys wait until the person has seen what happened.

use patterm_wire::follow::Selection;

use super::{Effect, panes, tell};
use crate::model::{Mode, Model};

/// A person who typed so lately goes on typing.
pub(super) const TYPING_MS: u64 = 5_000;

/// An answer that comes within this comes at once: nobody has begun to do something else.
const AT_ONCE_MS: u64 = 1_000;

/// Takes the calls of `select_process` that came, and says what was done about each.
pub(super) fn take_selections(model: &mut Model, effects: &mut Vec<Effect>) {
    let new: Vec<Selection> = model.seen.to_select.clone();
    for selection in new {
        if selection.number <= model.answered {
            continue;
        }
        model.answered = selection.number;
        let shown = !selection.mark_only || is_selected(model, &selection.process);
        let shown = shown && bring_forward(model, &selection.process, &selection.drafts, effects);
        if !shown {
            mark(model, &selection.process);
        }
        effects.push(Effect::AnswerSelection { number: selection.number, shown });
    }
}

/// Shows a process that somebody else wants seen, unless that would move the keyboard of a person who
/// uses it; whether it is shown.
pub(super) fn bring_forward(
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
    if is_in_use(model) || has_draft {
        return false;
    }
    panes::show(model, id, effects);
    true
}

fn is_selected(model: &Model, id: &str) -> bool {
    model.selected().is_some_and(|process| process.id == id)
}

/// Whether the person types, or is in the middle of something that keys belong to.
fn is_in_use(model: &Model) -> bool {
    let scrolls = model.focused_pane().is_some_and(|pane| pane.scroll.is_some());
    typed_lately(model) || model.mode != Mode::Typing || scrolls || model.held.is_some()
}

/// Whether the person typed anything within the last seconds.
pub(super) fn typed_lately(model: &Model) -> bool {
    model.typed_at.is_some_and(|at| model.now.saturating_sub(at) < TYPING_MS)
}

/// Marks a process that somebody wants seen; one key goes there.
pub(super) fn mark(model: &mut Model, id: &str) {
    let is_new = !model.marked.iter().any(|marked| marked == id);
    if is_new && model.process(id).is_some() {
        model.marked.push(id.to_owned());
    }
}

/// Goes to the process that was marked last.
pub(super) fn go_to_marked(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.marked.pop() {
        Some(id) => panes::attend(model, &id, effects),
        None => tell(model, "no process is marked", false),
    }
}

/// What is looked at, or gone, needs no mark.
pub(super) fn forget_marks(model: &mut Model) {
    let mut marked = std::mem::take(&mut model.marked);
    marked.retain(|id| !is_selected(model, id) && model.process(id).is_some());
    model.marked = marked;
}

/// The person asks for something that takes a while.
pub(super) fn asks(model: &mut Model) {
    model.asked_at = Some(model.now);
}

/// Whether what the person asked for comes too late to be shown at once: typing went on elsewhere.
pub(super) fn comes_late(model: &Model) -> bool {
    let at_once = model.asked_at.is_none_or(|at| model.now.saturating_sub(at) < AT_ONCE_MS);
    !at_once && model.sent_at > model.asked_at
}

/// The pane with the focus was taken away, not by the person. Who was typing into it has to look up
/// first: the rest of the word is for nobody else.
pub(super) fn taken_away(model: &mut Model, name: &str) {
    let sent_lately = model.sent_at.is_some_and(|at| model.now.saturating_sub(at) < TYPING_MS);
    if sent_lately && model.mode == Mode::Typing {
        model.mode = Mode::Interrupted { name: name.to_owned() };
    }
}
