//! Panes: which processes they show, which one has the focus, and their sizes.

use patterm_screen::{Screen, Size};
use patterm_wire::follow::ProcessKind;
use patterm_wire::follow::{ProcessInfo, ProcessStatus, ProjectSnapshot};
use patterm_wire::method::Empty;
use patterm_wire::tools::{ListAgents, SpawnProcess, SpawnProcessArgs};

use super::{CallPurpose, Effect, keyboard, restore};
use crate::layout::{Direction, Layout, PaneId};
use crate::model::{Model, Pane, is_alive, is_blocked};
use crate::send;

/// More panes would be unreadable, and each needs a connection.
const PANES: usize = 16;

/// Handles a new state of the project.
pub(super) fn apply_snapshot(
    model: &mut Model,
    snapshot: ProjectSnapshot,
    effects: &mut Vec<Effect>,
) {
    let reconnected = !model.connected;
    let chosen =
        (snapshot.selections != model.snapshot.selections || !model.has_snapshot) && !reconnected;
    let attention = new_attention(&model.snapshot, &snapshot, model.has_snapshot);
    let names = std::mem::replace(&mut model.snapshot, snapshot).processes;
    model.connected = true;
    if !model.has_snapshot {
        effects.push(Effect::call::<ListAgents>(&Empty {}, CallPurpose::Agents));
    }
    if reconnected {
        model.last_selection = 0;
    }
    drop_closed(model, &names, effects);
    begin(model, effects);
    // An older server sends only the last selection, and expects no answer.
    if chosen
        && let Some(id) = model.snapshot.selected.clone()
        && !keyboard::try_show(model, &id, &[], effects)
    {
        keyboard::mark(model, &id);
    }
    keyboard::take_selections(model, effects);
    if let Some(id) = model.to_show.clone().filter(|id| model.process(id).is_some()) {
        model.to_show = None;
        show_requested(model, &id, effects);
    }
    attach_new_runs(model, reconnected, effects);
    restore::refresh(model);
    if reconnected {
        restore::offer(model);
    }
    model.has_snapshot = true;
    if !model.focused {
        effects.extend(attention.into_iter().map(Effect::Notify));
    }
}

/// The processes that have started to need attention, as notifications.
fn new_attention(before: &ProjectSnapshot, now: &ProjectSnapshot, is_update: bool) -> Vec<String> {
    let attention = now.processes.iter().filter_map(|process| {
        let known = before.processes.iter().find(|known| known.id == process.id);
        let asked = known.and_then(|known| known.attention.as_ref());
        let waited = known.is_some_and(|known| asked.is_some() || is_blocked(known));
        let why = match &process.attention {
            Some(why) => (asked != Some(why)).then_some(why.as_str()),
            None => (is_blocked(process) && !waited).then_some("is waiting for you"),
        };
        why.filter(|_| is_update).map(|why| format!("{}: {why}", process.name))
    });
    attention.collect()
}

/// Shows what the user has requested, or marks it if the user has typed elsewhere since.
pub(super) fn show_requested(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    match keyboard::is_late(model) {
        true => keyboard::mark(model, id),
        false => show(model, id, effects),
    }
}

/// Removes the panes of closed processes; `before` has their names.
fn drop_closed(model: &mut Model, before: &[ProcessInfo], effects: &mut Vec<Effect>) {
    let is_known = |id: &String| model.snapshot.processes.iter().any(|process| process.id == *id);
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
            keyboard::focus_lost(model, name);
        }
    }
    model.closing.retain(|id| !closed_here.contains(id));
}

/// If there is no pane yet, shows a process: the requested one, the one that was shown last, or the newest that
/// is running.
fn begin(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.layout.is_some() || model.snapshot.processes.is_empty() {
        return;
    }
    if restore_layout(model) {
        return;
    }
    let named = model.to_show.as_ref().or(model.snapshot.looked_at.as_ref());
    let selected = named.and_then(|id| model.process(id));
    let tree: Vec<_> = model.tree().into_iter().map(|(_, process)| process).collect();
    let last = tree.iter().rfind(|process| is_alive(process)).or(tree.last()).copied();
    if let Some(id) = selected.or(last).map(|process| process.id.clone()) {
        show(model, &id, effects);
    }
}

/// Restores the saved layout as far as its processes exist; false if none does.
fn restore_layout(model: &mut Model) -> bool {
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

/// Attaches the panes whose process was started or restarted, and `all` after a reconnect. A process that is
/// starting cannot be attached yet.
fn attach_new_runs(model: &mut Model, all: bool, effects: &mut Vec<Effect>) {
    let has_started = |process: &&ProcessInfo| process.status != ProcessStatus::Starting;
    let runs: Vec<(PaneId, u64)> = model
        .panes
        .iter()
        .filter_map(|(id, pane)| {
            Some((*id, model.process(&pane.process).filter(has_started)?.runs))
        })
        .collect();
    for (id, run) in runs {
        let Some(pane) = model.panes.get_mut(&id) else { continue };
        if pane.run != run || all {
            pane.run = run;
            attach(model, id, false, effects);
        }
    }
}

/// Shows a process: in the pane that already shows it, otherwise in the pane with the focus.
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
        // Keys must not go to the previous process.
        effects.push(Effect::Leave(model.focus));
    }
    attach_new_runs(model, false, effects);
}

/// Shows a process at the user's request, which also answers its request for attention.
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
        requested: None,
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
    let size = size_of(model, id).or_else(|| model.panes.get(&id)?.requested);
    let size = size.unwrap_or(Size::DEFAULT);
    if let Some(pane) = model.panes.get_mut(&id) {
        pane.requested = Some(size);
        pane.refused = None;
        let process = pane.process.clone();
        effects.retain(|effect| !matches!(effect, Effect::Attach { pane, .. } if *pane == id));
        effects.push(Effect::Attach { pane: id, process, size, attends });
    }
}

/// Attaches every attached pane again.
pub(super) fn attach_all(model: &mut Model, effects: &mut Vec<Effect>) {
    let attached: Vec<PaneId> =
        model.panes.iter().filter(|(_, pane)| pane.run > 0).map(|(id, _)| *id).collect();
    for id in attached {
        attach(model, id, false, effects);
    }
}

/// Resizes the panes whose size has changed.
pub(super) fn fit(model: &mut Model, effects: &mut Vec<Effect>) {
    for (id, room) in model.places().0 {
        let body = model.body(room);
        let size = Size::new(body.height, body.width);
        let Some(pane) = model.panes.get_mut(&id) else { continue };
        if let Some(scroll) = &mut pane.scroll {
            scroll.height = usize::from(size.rows);
            scroll.shift(0);
        }
        if pane.requested != Some(size) {
            pane.requested = Some(size);
            effects.push(Effect::Size(id, size));
        }
    }
}

/// Moves the focus to a pane, with focus reports for programs that request them.
pub(super) fn focus(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if model.focus == id || !model.panes.contains_key(&id) {
        return;
    }
    send_focus(model, false, effects);
    model.focus = id;
    send_focus(model, true, effects);
    if model.zoomed {
        fit(model, effects);
    }
}

/// Sends a focus report to the program with the focus.
pub(super) fn send_focus(model: &Model, gained: bool, effects: &mut Vec<Effect>) {
    let Some(pane) = model.focused_pane() else { return };
    let bytes = send::focus(gained, &pane.screen.modes());
    if !bytes.is_empty() {
        effects.push(Effect::Send(model.focus, bytes));
    }
}

/// Splits the pane with the focus. The new pane shows a process that no pane shows, or a new shell.
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
        false => attach_new_runs(model, false, effects),
    }
    fit(model, effects);
}

pub(super) fn start_shell(effects: &mut Vec<Effect>) {
    let args =
        SpawnProcessArgs { kind: Some(ProcessKind::Terminal), ..SpawnProcessArgs::default() };
    effects.push(Effect::call::<SpawnProcess>(&args, CallPurpose::Start));
}

/// Removes a pane. Its process keeps running.
pub(super) fn remove(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let order = model.layout.as_ref().map(Layout::panes).unwrap_or_default();
    let at = order.iter().position(|pane| *pane == id).unwrap_or(0);
    model.panes.remove(&id);
    effects.push(Effect::Leave(id));
    model.layout = model.layout.take().and_then(|layout| layout.without(id));
    if model.focus == id {
        let left: Vec<_> = order.into_iter().filter(|pane| *pane != id).collect();
        model.focus = left.get(at.min(left.len().saturating_sub(1))).copied().unwrap_or(0);
        send_focus(model, true, effects);
    }
    if model.panes.len() < 2 {
        model.zoomed = false;
    }
    fit(model, effects);
}
