//! Panes of the current page: which has the focus, their places and sizes.

use super::panes::{fit, focus};
use super::{Effect, notify};
use crate::action::Action;
use crate::arrange::{Arrangement, Side};
use crate::layout::{Layout, PaneId};
use crate::model::{Mode, Model};

/// Cells by which the larger steps move a line.
const LARGE_STEP: u16 = 5;

/// How long a key that repeats an action needs no leader; tmux's default.
const REPEAT_MS: u64 = 500;

/// Performs an action on the layout.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::PaneTo(side) => go(model, side, effects),
        Action::OtherPane => step(model, 1, effects),
        Action::PaneBefore => step(model, -1, effects),
        Action::LastPane => focus(model, model.last_focus, effects),
        Action::Labels if model.panes.len() > 1 => model.mode = Mode::Labels,
        Action::Resize(side) => resize(model, side, 1),
        Action::ResizeMore(side) => resize(model, side, LARGE_STEP),
        Action::NextLayout => {
            let next = model.layout.as_ref().map(Arrangement::after);
            next.into_iter().for_each(|arrangement| arrange(model, arrangement));
        }
        Action::Arrange(arrangement) => arrange(model, arrangement),
        Action::SwapNext => swap(model, 1),
        Action::SwapPrevious => swap(model, -1),
        Action::Rotate => rotate(model, effects),
        _ => {}
    }
    fit(model, effects);
}

fn order(model: &Model) -> Vec<PaneId> {
    model.layout.as_ref().map(Layout::panes).unwrap_or_default()
}

/// The pane that is this many places after the one with the focus.
fn away(model: &Model, by: isize) -> Option<PaneId> {
    let order = order(model);
    let at = order.iter().position(|pane| *pane == model.focus).unwrap_or(0);
    let count = order.len().max(1);
    order.get((at + count).saturating_add_signed(by) % count).copied()
}

fn step(model: &mut Model, by: isize, effects: &mut Vec<Effect>) {
    if let Some(next) = away(model, by) {
        focus(model, next, effects);
    }
}

fn go(model: &mut Model, side: Side, effects: &mut Vec<Effect>) {
    let area = model.panes_area();
    let layout = model.layout.as_ref();
    let next = layout.and_then(|layout| layout.beside(area, model.focus, side, model.last_focus));
    if let Some(next) = next {
        focus(model, next, effects);
    }
}

fn resize(model: &mut Model, side: Side, cells: u16) {
    let area = model.panes_area();
    model.repeat_until = model.now + REPEAT_MS;
    if model.zoomed {
        return;
    }
    if let Some(layout) = &mut model.layout {
        layout.resize(area, model.focus, side, cells);
    }
}

fn arrange(model: &mut Model, arrangement: Arrangement) {
    let panes = order(model);
    if panes.len() > 1 {
        model.zoomed = false;
        model.layout = arrangement.arrange(&panes);
        notify(model, arrangement.name(), false);
    }
}

/// Exchanges the pane with the focus with another; the focus moves with it.
fn swap(model: &mut Model, by: isize) {
    let other = away(model, by);
    if let (Some(other), Some(layout)) = (other, &mut model.layout) {
        model.zoomed = false;
        layout.swap(model.focus, other);
    }
}

/// Moves all panes; the focus stays at its place on the screen.
fn rotate(model: &mut Model, effects: &mut Vec<Effect>) {
    let next = away(model, 1);
    if let Some(layout) = &mut model.layout {
        model.zoomed = false;
        layout.rotate();
    }
    if let Some(next) = next {
        focus(model, next, effects);
    }
}

/// A key while the labels are shown.
pub(super) fn label_key(model: &mut Model, label: char, effects: &mut Vec<Effect>) {
    let labels = model.layout.as_ref().map(Layout::labels).unwrap_or_default();
    if let Some((_, pane)) = labels.into_iter().find(|(known, _)| *known == label) {
        focus(model, pane, effects);
    }
}
