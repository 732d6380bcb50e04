//! Panes: which processes they show, which has the focus, how large they are.

use patterm_screen::{Screen, Size};
use patterm_wire::follow::{ProcessInfo, ProcessStatus, ProjectSnapshot};
use serde_json::json;

use super::{Asked, Effect, keyboard, restore};
use crate::layout::{Direction, Layout, PaneId};
use crate::model::{Model, Pane, is_alive, is_blocked};
use crate::send;

/// More panes than this nobody can read, and each is a connection.
const PANES: usize = 16;

/// Takes the project as it is now.
pub(super) fn seen(model: &mut Model, seen: ProjectSnapshot, effects: &mut Vec<Effect>) {
    let anew = !model.connected;
    let chosen = (seen.selections != model.seen.selections || !model.begun) && !anew;
    let called = newly_called(&model.seen, &seen, model.begun);
    let names = std::mem::replace(&mut model.seen, seen).processes;
    model.connected = true;
    if !model.begun {
        effects.push(Effect::Call {
            tool: "list_agents",
            arguments: json!({}),
            asked: Asked::Agents,
        });
    }
    if anew {
        model.answered = 0;
    }
    drop_closed(model, &names, effects);
    begin(model, effects);
    // An older server tells of the last one only, and wants no answer.
    if chosen
        && let Some(id) = model.seen.selected.clone()
        && !keyboard::bring_forward(model, &id, &[], effects)
    {
        keyboard::mark(model, &id);
    }
    keyboard::take_selections(model, effects);
    if let Some(id) = model.wanted.clone().filter(|id| model.process(id).is_some()) {
        model.wanted = None;
        show_asked(model, &id, effects);
    }
    attach_what_is_not(model, anew, effects);
    restore::follow(model);
    if anew {
        restore::offer(model);
    }
    model.begun = true;
    if !model.focused {
        effects.extend(called.into_iter().map(Effect::Notify));
    }
}

/// Who asks for a person now and did not before.
fn newly_called(before: &ProjectSnapshot, now: &ProjectSnapshot, begun: bool) -> Vec<String> {
    let called = now.processes.iter().filter_map(|process| {
        let known = before.processes.iter().find(|known| known.id == process.id);
        let asked = known.and_then(|known| known.attention.as_ref());
        let waited = known.is_some_and(|known| asked.is_some() || is_blocked(known));
        let why = match &process.attention {
            Some(why) => (asked != Some(why)).then_some(why.as_str()),
            None => (is_blocked(process) && !waited).then_some("waits for you"),
        };
        why.filter(|_| begun).map(|why| format!("{}: {why}", process.name))
    });
    called.collect()
}

/// Shows what the person asked for, or marks it where typing went on elsewhere meanwhile.
pub(super) fn show_asked(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    match keyboard::comes_late(model) {
        true => keyboard::mark(model, id),
        false => show(model, id, effects),
    }
}

/// Panes of processes that are closed go; `before` says how they were called.
fn drop_closed(model: &mut Model, before: &[ProcessInfo], effects: &mut Vec<Effect>) {
    let is_known = |id: &String| model.seen.processes.iter().any(|process| process.id == *id);
    let closed_here: Vec<String> =
        model.closing.iter().filter(|id| !is_known(id)).cloned().collect();
    let gone: Vec<PaneId> = model
        .panes
        .iter()
        .filter(|(_, pane)| !pane.process.is_empty() && model.process(&pane.process).is_none())
        .map(|(id, _)| *id)
        .collect();
    for id in gone {
        let process = model.panes.get(&id).map(|pane| pane.process.clone()).unwrap_or_default();
        let had_focus = model.focus == id;
        remove(model, id, effects);
        if had_focus && !closed_here.contains(&process) {
            let known = before.iter().find(|known| known.id == process);
            let name = known.map_or(process.as_str(), |known| &known.name);
            keyboard::taken_away(model, name);
        }
    }
    model.closing.retain(|id| !closed_here.contains(id));
}

/// With processes and no pane, the first one is shown: what was asked for, what was looked at
/// last, or whatever came last and still runs.
fn begin(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.layout.is_some() || model.seen.processes.is_empty() {
        return;
    }
    if restore(model) {
        return;
    }
    let named = model.wanted.as_ref().or(model.seen.looked_at.as_ref());
    let selected = named.and_then(|id| model.process(id));
    let tree: Vec<_> = model.tree().into_iter().map(|(_, process)| process).collect();
    let last = tree.iter().rfind(|process| is_alive(process)).or(tree.last()).copied();
    if let Some(id) = selected.or(last).map(|process| process.id.clone()) {
        show(model, &id, effects);
    }
}

/// Lays out what the last visit left, as far as it is still there; false if nothing of it is.
fn restore(model: &mut Model) -> bool {
    let Some(saved) = model.saved_layout.take() else { return false };
    let mut panes: Vec<(PaneId, Pane)> = Vec::new();
    model.layout = saved.place(|id| {
        let pane = new_pane(model.process(id)?);
        let twice = panes.iter().any(|(_, pane)| pane.process == id);
        if twice || panes.len() >= PANES {
            return None;
        }
        model.last_pane += 1;
        panes.push((model.last_pane, pane));
        Some(model.last_pane)
    });
    let focus =
        panes.iter().find(|(_, pane)| Some(pane.process.as_str()) == saved.focus.as_deref());
    let Some((focus, _)) = focus.or(panes.first()) else { return false };
    model.focus = *focus;
    model.panes = panes.into_iter().collect();
    model.zoomed = saved.zoomed && model.panes.len() > 1;
    true
}

/// Attaches panes whose process has begun, or begun anew, and all of them after the server has. A
/// process that is being started has nothing to attach to yet.
fn attach_what_is_not(model: &mut Model, anew: bool, effects: &mut Vec<Effect>) {
    let begun = |process: &&ProcessInfo| process.status != ProcessStatus::Starting;
    let runs: Vec<(PaneId, u64)> = model
        .panes
        .iter()
        .filter_map(|(id, pane)| Some((*id, model.process(&pane.process).filter(begun)?.runs)))
        .collect();
    for (id, run) in runs {
        let Some(pane) = model.panes.get_mut(&id) else { continue };
        if pane.run != run || anew {
            pane.run = run;
            attach(model, id, false, effects);
        }
    }
}

/// Shows a process: where it is shown already, else in the pane with the focus.
pub(super) fn show(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let Some(process) = model.process(id).cloned() else { return };
    let pane = new_pane(&process);
    let there = model.panes.iter().find(|(_, pane)| pane.process == id).map(|(id, _)| *id);
    if let Some(there) = there {
        focus(model, there, effects);
        return;
    }
    if model.layout.is_none() {
        model.last_pane += 1;
        model.focus = model.last_pane;
        model.layout = Some(Layout::Pane(model.focus));
    }
    let waits = process.status == ProcessStatus::Starting;
    let replaced = model.panes.insert(model.focus, pane);
    if waits && replaced.is_some() {
        // Keys are not for what was shown before.
        effects.push(Effect::Leave(model.focus));
    }
    attach_what_is_not(model, false, effects);
}

/// Shows a process that asks for the person, who answers by going there.
pub(super) fn attend(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    show(model, id, effects);
    let asks = model.process(id).is_some_and(|process| process.attention.is_some());
    let there = model.panes.iter().find(|(_, pane)| pane.process == id).map(|(id, _)| *id);
    if let Some(there) = there.filter(|_| asks) {
        attach(model, there, true, effects);
    }
}

fn new_pane(process: &ProcessInfo) -> Pane {
    Pane {
        process: process.id.clone(),
        screen: Screen::new(Size::DEFAULT),
        run: 0,
        live: false,
        refused: None,
        asked: None,
        scroll: None,
    }
}

fn size_of(model: &Model, id: PaneId) -> Option<Size> {
    let (places, _) = model.places();
    let (_, room) = places.into_iter().find(|(pane, _)| *pane == id)?;
    let body = model.body(room);
    Some(Size::new(body.height, body.width))
}

fn attach(model: &mut Model, id: PaneId, attends: bool, effects: &mut Vec<Effect>) {
    let size = size_of(model, id).or_else(|| model.panes.get(&id)?.asked);
    let size = size.unwrap_or(Size::DEFAULT);
    if let Some(pane) = model.panes.get_mut(&id) {
        pane.asked = Some(size);
        pane.refused = None;
        let process = pane.process.clone();
        effects.retain(|effect| !matches!(effect, Effect::Attach { pane, .. } if *pane == id));
        effects.push(Effect::Attach { pane: id, process, size, attends });
    }
}

/// Attaches every pane that is attached, anew.
pub(super) fn attach_all(model: &mut Model, effects: &mut Vec<Effect>) {
    let attached: Vec<PaneId> =
        model.panes.iter().filter(|(_, pane)| pane.run > 0).map(|(id, _)| *id).collect();
    for id in attached {
        attach(model, id, false, effects);
    }
}

/// Tells every pane how much room it has, where that changed.
pub(super) fn fit(model: &mut Model, effects: &mut Vec<Effect>) {
    for (id, room) in model.places().0 {
        let body = model.body(room);
        let size = Size::new(body.height, body.width);
        let Some(pane) = model.panes.get_mut(&id) else { continue };
        if let Some(scroll) = &mut pane.scroll {
            scroll.height = usize::from(size.rows);
            scroll.shift(0);
        }
        if pane.asked != Some(size) {
            pane.asked = Some(size);
            effects.push(Effect::Size(id, size));
        }
    }
}

/// Gives a pane the focus, and tells programs that want to know.
pub(super) fn focus(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if model.focus == id || !model.panes.contains_key(&id) {
        return;
    }
    tell_focus(model, false, effects);
    model.focus = id;
    tell_focus(model, true, effects);
    if model.zoomed {
        fit(model, effects);
    }
}

/// Tells the program with the focus of it.
pub(super) fn tell_focus(model: &Model, gained: bool, effects: &mut Vec<Effect>) {
    let Some(pane) = model.focused_pane() else { return };
    let bytes = send::focus(gained, &pane.screen.modes());
    if !bytes.is_empty() {
        effects.push(Effect::Send(model.focus, bytes));
    }
}

/// Puts another pane beside or below the one with the focus. It shows a process that no pane
/// shows, or a new shell where there is none.
pub(super) fn split(model: &mut Model, direction: Direction, effects: &mut Vec<Effect>) {
    if model.layout.is_none() || model.panes.len() >= PANES {
        return;
    }
    model.zoomed = false;
    let shown = |id: &str| model.panes.values().any(|pane| pane.process == id);
    let hidden = model.tree().into_iter().map(|(_, process)| process).find(|p| !shown(&p.id));
    let pane = hidden.map(new_pane);
    let at = model.focus;
    model.last_pane += 1;
    let id = model.last_pane;
    if let Some(layout) = &mut model.layout {
        layout.split(at, direction, id);
    }
    let none = pane.is_none();
    model.panes.insert(id, pane.unwrap_or_else(|| new_pane(&ProcessInfo::default())));
    focus(model, id, effects);
    match none {
        true => start_shell(effects),
        false => attach_what_is_not(model, false, effects),
    }
    fit(model, effects);
}

pub(super) fn start_shell(effects: &mut Vec<Effect>) {
    effects.push(Effect::Call {
        tool: "spawn_process",
        arguments: json!({"kind": "terminal"}),
        asked: Asked::Start,
    });
}

/// Takes a pane away. Its process goes on.
pub(super) fn remove(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let order = model.layout.as_ref().map(Layout::panes).unwrap_or_default();
    let at = order.iter().position(|pane| *pane == id).unwrap_or(0);
    model.panes.remove(&id);
    effects.push(Effect::Leave(id));
    model.layout = model.layout.take().and_then(|layout| layout.without(id));
    if model.focus == id {
        let left: Vec<_> = order.into_iter().filter(|pane| *pane != id).collect();
        model.focus = left.get(at.min(left.len().saturating_sub(1))).copied().unwrap_or(0);
        tell_focus(model, true, effects);
    }
    if model.panes.len() < 2 {
        model.zoomed = false;
    }
    fit(model, effects);
}
