//! Pages: several layouts of one project, of which one is shown. Only its panes have connections.

use std::collections::BTreeMap;

use super::panes::{attach_new_runs, fit, focus, send_focus};
use super::{Effect, notify};
use crate::layout::{Layout, PaneId};
use crate::model::{Model, Pane, PanePage};
use crate::saved_layout::{SavedLayout, SavedPage};

/// More pages would not fit into any list; it also limits what a saved layout can create.
const PAGES: usize = 64;

/// More panes on a page would be unreadable, and each needs a connection.
pub(super) const PANES: usize = 16;

/// Characters of a page's name: more would leave no space for the others.
pub(super) const NAME_CHARS: usize = 40;

/// Exchanges the model's panes with those stored for the current page.
pub(super) fn exchange(model: &mut Model) {
    let Some(page) = model.pages.get_mut(model.page) else { return };
    std::mem::swap(&mut page.panes, &mut model.panes);
    std::mem::swap(&mut page.layout, &mut model.layout);
    std::mem::swap(&mut page.focus, &mut model.focus);
    std::mem::swap(&mut page.last_focus, &mut model.last_focus);
    std::mem::swap(&mut page.zoomed, &mut model.zoomed);
    std::mem::swap(&mut page.broadcast, &mut model.broadcast);
}

/// Hides the current page: its panes are detached.
fn hide(model: &mut Model, effects: &mut Vec<Effect>) {
    send_focus(model, false, effects);
    for (id, pane) in &mut model.panes {
        pane.detach();
        effects.push(Effect::Leave(*id));
    }
    model.last_page = model.pages.get(model.page).map(|page| page.number);
    exchange(model);
}

/// Shows the page at an index, after the current one was hidden or removed.
fn bring(model: &mut Model, at: usize, effects: &mut Vec<Effect>) {
    model.page = at.min(model.pages.len().saturating_sub(1));
    exchange(model);
    fit(model, effects);
    attach_new_runs(model, false, effects);
    send_focus(model, true, effects);
}

/// Shows a page.
pub(super) fn go_to(model: &mut Model, at: usize, effects: &mut Vec<Effect>) {
    if at == model.page || at >= model.pages.len() {
        return;
    }
    hide(model, effects);
    bring(model, at, effects);
}

/// Shows the page with this number.
pub(super) fn go_to_number(model: &mut Model, number: u32, effects: &mut Vec<Effect>) {
    match index_of(model, number) {
        Some(at) => go_to(model, at, effects),
        None => notify(model, &format!("there is no page {number}"), false),
    }
}

/// The page with this number, as an index.
pub(super) fn index_of(model: &Model, number: u32) -> Option<usize> {
    model.pages.iter().position(|page| page.number == number)
}

/// Shows the page that is this many places after the current one.
pub(super) fn step(model: &mut Model, by: isize, effects: &mut Vec<Effect>) {
    let count = model.pages.len().max(1);
    if count == 1 {
        let press = model.settings.keys.press(crate::action::Action::NewPage);
        notify(model, &format!("there is only this page; {press} makes another"), false);
    }
    go_to(model, (model.page + count).saturating_add_signed(by) % count, effects);
}

/// Shows the page that was shown before.
pub(super) fn go_to_last(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.last_page.and_then(|number| index_of(model, number)) {
        Some(at) => go_to(model, at, effects),
        None => notify(model, "no other page was shown before", false),
    }
}

/// Adds a page for a pane and shows it. Its number is the first free one. If the current page is empty, the pane is
/// added there instead.
fn add(model: &mut Model, id: PaneId, pane: Pane, effects: &mut Vec<Effect>) {
    if model.layout.is_some() {
        hide(model, effects);
        let taken = |number: &u32| model.pages.iter().any(|page| page.number == *number);
        let number = (0..).find(|number| !taken(number)).unwrap_or(0);
        let at = model.pages.partition_point(|page| page.number < number);
        model.pages.insert(at, PanePage { number, ..PanePage::default() });
        model.page = at;
    }
    model.panes.insert(id, pane);
    model.layout = Some(Layout::Pane(id));
    model.focus = id;
    fit(model, effects);
}

/// Whether there may be another page.
fn has_room(model: &mut Model) -> bool {
    let has_room = model.pages.len() < PAGES;
    if !has_room {
        notify(model, &format!("there are {PAGES} pages, which is the limit; close one"), true);
    }
    has_room
}

/// Adds a page with a pane that waits for its process.
pub(super) fn add_waiting(model: &mut Model, effects: &mut Vec<Effect>) -> Option<PaneId> {
    if !has_room(model) {
        return None;
    }
    model.last_pane += 1;
    let id = model.last_pane;
    add(model, id, Pane::waiting(), effects);
    Some(id)
}

/// Moves the pane with the focus to a new page, with its connection.
pub(super) fn break_out(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.panes.len() < 2 {
        notify(model, "this pane is alone on its page", false);
        return;
    }
    if has_room(model)
        && let Some((id, pane)) = take_focused(model)
    {
        add(model, id, pane, effects);
    }
}

/// Takes the pane with the focus out of its page.
fn take_focused(model: &mut Model) -> Option<(PaneId, Pane)> {
    let id = model.focus;
    let pane = model.panes.remove(&id)?;
    remove_shown(model, id);
    Some((id, pane))
}

/// Removes a pane of the current page.
pub(super) fn remove_shown(model: &mut Model, id: PaneId) {
    exchange(model);
    if let Some(page) = model.pages.get_mut(model.page) {
        page.remove(id);
    }
    exchange(model);
}

/// Closes the current page; its processes keep running.
pub(super) fn close(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.pages.len() < 2 {
        notify(model, "the only page cannot be closed", false);
        return;
    }
    let last = model.last_page;
    hide(model, effects);
    model.last_page = last;
    discard(model, effects);
}

/// Removes the current page, which is hidden or has no panes, and shows the one that was shown before.
pub(super) fn discard(model: &mut Model, effects: &mut Vec<Effect>) {
    let last = model.last_page.and_then(|number| index_of(model, number));
    let at = model.page;
    model.pages.remove(at);
    let next = match last.filter(|last| *last != at) {
        Some(last) if last > at => last - 1,
        Some(last) => last,
        None => at.min(model.pages.len().saturating_sub(1)),
    };
    bring(model, next, effects);
    let current = model.pages.get(model.page).map(|page| page.number);
    model.last_page = model.last_page.filter(|last| Some(*last) != current);
}

/// Removes a pane of a hidden page, and the page with its last pane; false if no hidden page has it.
pub(super) fn remove_hidden(model: &mut Model, id: PaneId) -> bool {
    let has_it = |page: &PanePage| page.panes.contains_key(&id);
    let Some(at) = model.pages.iter().position(has_it) else { return false };
    model.pages[at].remove(id);
    if model.pages[at].layout.is_none() && at != model.page {
        model.pages.remove(at);
        model.page -= usize::from(at < model.page);
    }
    true
}

/// The hidden pane that shows a process: its page's index and its number.
pub(super) fn hidden_pane_of(model: &Model, process: &str) -> Option<(usize, PaneId)> {
    model.pages.iter().enumerate().find_map(|(at, page)| {
        let pane = page.panes.iter().find(|(_, pane)| pane.process == process);
        pane.map(|(id, _)| (at, *id))
    })
}

/// Brings a pane of another page to this one, beside the pane with the focus.
pub(super) fn join(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    if model.panes.len() >= PANES {
        notify(model, &format!("this page has {PANES} panes, which is the limit"), true);
        return;
    }
    let found = model.pages.iter_mut().find_map(|page| page.panes.remove(&id));
    let Some(pane) = found else { return };
    // Its place in the layout of that page.
    let has_it = |page: &PanePage| page.layout.as_ref().is_some_and(|l| l.panes().contains(&id));
    if let Some(at) = model.pages.iter().position(has_it) {
        model.pages[at].remove(id);
        if model.pages[at].layout.is_none() {
            model.pages.remove(at);
            model.page -= usize::from(at < model.page);
        }
    }
    if let Some(there) = model.panes.iter().find(|(_, other)| other.process == pane.process) {
        let there = *there.0;
        focus(model, there, effects);
        return;
    }
    let direction = super::split::roomier(model);
    super::split::insert(model, id, pane, direction, effects);
}

/// Moves the pane with the focus to another page, and shows that.
pub(super) fn move_to(model: &mut Model, number: u32, effects: &mut Vec<Effect>) {
    let Some(at) = index_of(model, number).filter(|at| *at != model.page) else { return };
    if model.pages[at].panes.len() >= PANES {
        notify(model, &format!("page {number} has {PANES} panes, which is the limit"), true);
        return;
    }
    let id = model.focus;
    go_to(model, at, effects);
    join(model, id, effects);
}

/// Restores the saved pages as far as their processes exist; false if none of them exists.
pub(super) fn restore(model: &mut Model) -> bool {
    let Some(saved) = model.saved_layout.take() else { return false };
    let current = saved.page;
    let mut pages: Vec<PanePage> = Vec::new();
    for saved in restorable(saved) {
        pages.extend(restore_page(model, saved));
    }
    if pages.is_empty() {
        return false;
    }
    let at = pages.iter().position(|page| Some(page.number) == current);
    (model.pages, model.page) = (pages, at.unwrap_or(0));
    exchange(model);
    true
}

/// The pages of a saved layout by their numbers, each number once, and not too many.
pub(super) fn restorable(saved: SavedLayout) -> Vec<SavedPage> {
    let mut pages = saved.into_pages();
    pages.sort_by_key(|page| page.number);
    pages.dedup_by_key(|page| page.number);
    pages.truncate(PAGES);
    pages
}

fn restore_page(model: &mut Model, saved: SavedPage) -> Option<PanePage> {
    let mut panes: BTreeMap<PaneId, Pane> = BTreeMap::new();
    let layout = saved.place(|id| {
        let pane = Pane::of(model.process(id)?);
        let twice = panes.values().any(|pane| pane.process == id);
        if twice || panes.len() >= PANES {
            return None;
        }
        model.last_pane += 1;
        panes.insert(model.last_pane, pane);
        Some(model.last_pane)
    })?;
    let has_focus = |pane: &Pane| Some(pane.process.as_str()) == saved.focus.as_deref();
    let focus = panes.iter().find(|(_, pane)| has_focus(pane)).or(panes.first_key_value());
    let focus = focus.map_or(0, |(id, _)| *id);
    let zoomed = saved.zoomed && panes.len() > 1;
    let name = saved.name.and_then(|name| page_name(&name));
    Some(PanePage {
        number: saved.number,
        name,
        panes,
        layout: Some(layout),
        focus,
        zoomed,
        ..PanePage::default()
    })
}

/// A name as the user gave it; `None` for an empty one.
pub(super) fn page_name(given: &str) -> Option<String> {
    let name: String = crate::list::one_line(given.trim()).chars().take(NAME_CHARS).collect();
    patterm_screen::has_visible_character(&name).then_some(name)
}
