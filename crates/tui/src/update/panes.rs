//! Panes: which processes they show, which one has the focus, and their sizes.

use patterm_screen::Size;
use patterm_wire::follow::{ProcessInfo, ProcessStatus, ProjectSnapshot};
use patterm_wire::method::Empty;
use patterm_wire::tools::ListAgents;

use super::{CallPurpose, Effect, ended, keyboard, pages, restore, split};
use crate::layout::{Layout, PaneId};
use crate::model::{Model, Pane, is_alive, is_blocked, need};
use crate::send;

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
    if !reconnected {
        ended::leave(model, &names, effects);
    }
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
    split::place_started(model, effects);
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
            None => (is_blocked(process) && !waited).then(|| need(process)),
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
    let hidden = model.pages.iter().flat_map(|page| page.panes.iter());
    let gone: Vec<PaneId> = hidden
        .filter(|(_, pane)| !pane.process.is_empty() && model.process(&pane.process).is_none())
        .map(|(id, _)| *id)
        .collect();
    for id in gone {
        pages::remove_hidden(model, id);
    }
    model.closing.retain(|id| !closed_here.contains(id));
}

/// If there is no pane yet, shows a process: the requested one, the one that was shown last, or the newest that
/// is running.
fn begin(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.layout.is_some() || model.snapshot.processes.is_empty() {
        return;
    }
    if pages::restore(model) {
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

/// Attaches the panes whose process was started or restarted, and `all` after a reconnect. A process that is
/// starting cannot be attached yet.
pub(super) fn attach_new_runs(model: &mut Model, all: bool, effects: &mut Vec<Effect>) {
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
            attach(model, id, effects);
        }
    }
}

/// Shows a process: in the pane that already shows it, on this page or another, otherwise in the pane with the
/// focus.
pub(super) fn show(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let is_here = model.panes.values().any(|pane| pane.process == id);
    match pages::hidden_pane_of(model, id).filter(|_| !is_here) {
        Some((page, pane)) => {
            pages::go_to(model, page, effects);
            focus(model, pane, effects);
        }
        None => show_here(model, id, effects),
    }
}

/// Shows a process on this page: in the pane that already shows it, otherwise in the pane with the focus.
pub(super) fn show_here(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let Some(process) = model.process(id).cloned() else { return };
    let there = model.panes.iter().find(|(_, pane)| pane.process == id).map(|(id, _)| *id);
    if let Some(there) = there {
        focus(model, there, effects);
        // Whoever asks to see it wants it in the size of this terminal, even before typing into it.
        if let Some(size) = model.panes.get(&there).and_then(|pane| pane.requested) {
            effects.push(Effect::Size(there, size));
        }
        return;
    }
    if model.layout.is_none() {
        model.last_pane += 1;
        model.focus = model.last_pane;
        model.layout = Some(Layout::Pane(model.focus));
    }
    model.layout_changed = true;
    let waits = process.status == ProcessStatus::Starting;
    let replaced = model.panes.insert(model.focus, Pane::of(&process));
    if waits && replaced.is_some() {
        // Keys must not go to the previous process.
        effects.push(Effect::Leave(model.focus));
    }
    attach_new_runs(model, false, effects);
}

/// Shows a process in the pane with the focus. If another pane of this page shows it, the two change places.
pub(super) fn put_here(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let there = model.panes.iter().find(|(_, pane)| pane.process == id).map(|(id, _)| *id);
    if let (Some(there), Some(layout)) = (there, &mut model.layout) {
        layout.swap(model.focus, there);
        focus(model, there, effects);
        fit(model, effects);
        return;
    }
    show_here(model, id, effects);
}

fn size_of(model: &Model, id: PaneId) -> Option<Size> {
    let (places, _) = model.places();
    let (_, room) = places.into_iter().find(|(pane, _)| *pane == id)?;
    let body = model.body(room);
    Some(Size::new(body.height, body.width))
}

fn attach(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let size = size_of(model, id).or_else(|| model.panes.get(&id)?.requested);
    let size = size.unwrap_or(Size::DEFAULT);
    let now = model.now;
    if let Some(pane) = model.panes.get_mut(&id) {
        (pane.requested, pane.requested_at) = (Some(size), now);
        pane.refused = None;
        let process = pane.process.clone();
        effects.retain(|effect| !matches!(effect, Effect::Attach { pane, .. } if *pane == id));
        effects.push(Effect::Attach { pane: id, process, size });
    }
}

/// Attaches every attached pane again.
pub(super) fn attach_all(model: &mut Model, effects: &mut Vec<Effect>) {
    let attached: Vec<PaneId> =
        model.panes.iter().filter(|(_, pane)| pane.run > 0).map(|(id, _)| *id).collect();
    for id in attached {
        attach(model, id, effects);
    }
}

/// Resizes the panes whose size has changed.
pub(super) fn fit(model: &mut Model, effects: &mut Vec<Effect>) {
    model.layout_changed = true;
    for (id, room) in model.places().0 {
        let body = model.body(room);
        let size = Size::new(body.height, body.width);
        let Some(pane) = model.panes.get_mut(&id) else { continue };
        if let Some(scroll) = &mut pane.scroll {
            scroll.height = usize::from(size.rows);
            scroll.shift(0);
        }
        if pane.requested != Some(size) {
            (pane.requested, pane.requested_at) = (Some(size), model.now);
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
    (model.last_focus, model.focus) = (model.focus, id);
    model.layout_changed = true;
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

/// Removes a pane. Its process keeps running.
pub(super) fn remove(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if !model.panes.contains_key(&id) {
        pages::remove_hidden(model, id);
        return;
    }
    let had_focus = model.focus == id;
    effects.push(Effect::Leave(id));
    pages::remove_shown(model, id);
    if model.layout.is_none() && model.pages.len() > 1 {
        pages::discard(model, effects);
        return;
    }
    if had_focus {
        send_focus(model, true, effects);
    }
    fit(model, effects);
}
