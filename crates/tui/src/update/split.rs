//! New panes on the current page.

use patterm_wire::follow::ProcessKind;
use patterm_wire::tools::{SpawnAgent, SpawnAgentArgs, SpawnProcess, SpawnProcessArgs};

use super::pages::PANES;
use super::panes::{attach_new_runs, fit, focus};
use super::{CallPurpose, Effect, actions, keyboard, notify, pages};
use crate::layout::{Direction, PaneId};
use crate::model::{ListKind, Model, Pane};
use crate::settings::SplitPolicy;

/// Terminal cells are about twice as high as they are wide.
const CELL_HEIGHT: u16 = 2;

/// Asks what to put into a new pane.
pub(super) fn ask(model: &mut Model, direction: Direction, effects: &mut Vec<Effect>) {
    if model.layout.is_none() {
        new_page(model, effects);
    } else if has_room(model) {
        if model.settings.split == SplitPolicy::Shell {
            with_shell(model, direction, effects);
            return;
        }
        actions::request_agents(effects);
        actions::open(model, ListKind::Split(direction));
    }
}

fn has_room(model: &mut Model) -> bool {
    let has_room = model.panes.len() < PANES;
    if !has_room {
        notify(model, &format!("this page has {PANES} panes, which is the limit"), true);
    }
    has_room
}

/// The direction in which a split leaves the panes closer to a square.
pub(super) fn roomier(model: &Model) -> Direction {
    let place = model.places().0.into_iter().find(|(id, _)| *id == model.focus);
    match place {
        Some((_, room)) if room.width < room.height.saturating_mul(CELL_HEIGHT) => Direction::Below,
        _ => Direction::Beside,
    }
}

/// Adds a pane next to the one with the focus, and moves the focus there.
pub(super) fn insert(
    model: &mut Model,
    id: PaneId,
    pane: Pane,
    direction: Direction,
    effects: &mut Vec<Effect>,
) {
    model.zoomed = false;
    let at = model.focus;
    if let Some(layout) = &mut model.layout {
        layout.split(at, direction, id);
    }
    model.panes.insert(id, pane);
    focus(model, id, effects);
    attach_new_runs(model, false, effects);
    fit(model, effects);
}

fn insert_new(
    model: &mut Model,
    pane: Pane,
    direction: Direction,
    effects: &mut Vec<Effect>,
) -> Option<PaneId> {
    if !has_room(model) {
        return None;
    }
    model.last_pane += 1;
    let id = model.last_pane;
    insert(model, id, pane, direction, effects);
    Some(id)
}

/// Adds a pane with a process that already exists.
pub(super) fn with_process(
    model: &mut Model,
    direction: Direction,
    id: &str,
    effects: &mut Vec<Effect>,
) {
    let there = model.panes.iter().find(|(_, pane)| pane.process == id).map(|(id, _)| *id);
    match (there, model.process(id).map(Pane::of)) {
        (Some(there), _) => focus(model, there, effects),
        (None, Some(pane)) => {
            insert_new(model, pane, direction, effects);
        }
        (None, None) => {}
    }
}

/// Adds a pane with a new shell.
pub(super) fn with_shell(model: &mut Model, direction: Direction, effects: &mut Vec<Effect>) {
    if let Some(pane) = insert_new(model, Pane::waiting(), direction, effects) {
        start_shell(Some(pane), effects);
    }
}

/// Starts an agent: in a new pane, or in the one with the focus.
pub(super) fn start_agent(
    model: &mut Model,
    direction: Option<Direction>,
    args: &SpawnAgentArgs,
    effects: &mut Vec<Effect>,
) {
    let pane = direction.and_then(|direction| {
        model.layout.as_ref()?;
        insert_new(model, Pane::waiting(), direction, effects)
    });
    notify(model, &format!("starting {}…", args.agent), false);
    keyboard::note_request(model);
    effects.push(Effect::call::<SpawnAgent>(args, CallPurpose::Start(pane)));
}

/// Starts a shell on a new page.
pub(super) fn new_page(model: &mut Model, effects: &mut Vec<Effect>) {
    keyboard::note_request(model);
    if let Some(pane) = pages::add_waiting(model, effects) {
        start_shell(Some(pane), effects);
    }
}

/// Starts a shell for a pane; without one, it is shown in the pane with the focus.
pub(super) fn start_shell(pane: Option<PaneId>, effects: &mut Vec<Effect>) {
    let args =
        SpawnProcessArgs { kind: Some(ProcessKind::Terminal), ..SpawnProcessArgs::default() };
    effects.push(Effect::call::<SpawnProcess>(&args, CallPurpose::Start(pane)));
}

/// Shows processes that were started for panes, once they are known.
pub(super) fn place_started(model: &mut Model, effects: &mut Vec<Effect>) {
    for (process, id) in std::mem::take(&mut model.to_place) {
        let Some(pane) = model.process(&process).map(Pane::of) else {
            model.to_place.push((process, id));
            continue;
        };
        let hidden = model.pages.iter_mut().find_map(|page| page.panes.get_mut(&id));
        match model.panes.get_mut(&id).or(hidden) {
            Some(waiting) => {
                *waiting = pane;
                model.layout_changed = true;
            }
            // The user has removed the pane in the meantime.
            None => keyboard::mark(model, &process),
        }
    }
    attach_new_runs(model, false, effects);
}
