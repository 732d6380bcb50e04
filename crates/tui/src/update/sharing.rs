//! The pages and layouts that several terminals share. Each terminal has its own focus, current page and zoom: what
//! another user does never moves the keyboard focus.

use std::collections::BTreeMap;

use super::pages::{PANES, exchange, page_name, restorable};
use super::panes::{attach_new_runs, fit};
use super::{Effect, keyboard};
use crate::layout::PaneId;
use crate::model::{Model, Pane, PanePage};
use crate::saved_layout::{SavedLayout, SavedPage};
use crate::settings::LayoutPolicy;

/// Applies the layout that another terminal has saved.
pub(super) fn take(model: &mut Model, saved: SavedLayout, effects: &mut Vec<Effect>) {
    let is_shared = model.settings.layout == LayoutPolicy::Shared && model.has_snapshot;
    let pages = restorable(saved);
    if !is_shared || !pages.iter().any(|page| shows_something(model, page)) {
        return;
    }
    let (current, focus) = (model.pages.get(model.page).map(|page| page.number), model.focus);
    let name = model.selected().map(|process| process.name.clone());
    exchange(model);
    let mut before = std::mem::take(&mut model.pages);
    for page in pages {
        let old = before.iter_mut().find(|old| old.number == page.number);
        let page = apply(model, &page, old);
        model.pages.extend(page);
    }
    // Only the panes of the current page have connections.
    let gone = before.iter().filter(|page| Some(page.number) == current);
    effects.extend(gone.flat_map(|page| page.panes.keys()).map(|id| Effect::Leave(*id)));
    let at = model.pages.iter().position(|page| Some(page.number) == current);
    model.page = at.unwrap_or(0);
    exchange(model);
    fit(model, effects);
    attach_new_runs(model, false, effects);
    if model.focus != focus {
        keyboard::focus_lost(model, name.as_deref().unwrap_or("the pane"));
    }
    // This layout is already saved.
    model.layout_changed = false;
}

fn shows_something(model: &Model, page: &SavedPage) -> bool {
    page.place(|id| model.process(id).map(|_| 0)).is_some()
}

/// Builds a saved page, and reuses those of the old page's panes that it still has.
fn apply(model: &mut Model, saved: &SavedPage, mut old: Option<&mut PanePage>) -> Option<PanePage> {
    let mut panes: BTreeMap<PaneId, Pane> = BTreeMap::new();
    let layout = saved.place(|process| {
        let twice = panes.values().any(|pane| pane.process == process);
        let pane = Pane::of(model.process(process)?);
        if twice || panes.len() >= PANES {
            return None;
        }
        let known = old.as_mut().and_then(|old| old.take_pane(process));
        let (id, pane) = known.unwrap_or_else(|| {
            model.last_pane += 1;
            (model.last_pane, pane)
        });
        panes.insert(id, pane);
        Some(id)
    })?;
    let own = old.as_ref().map(|old| old.focus).filter(|focus| panes.contains_key(focus));
    let named = panes.iter().find(|(_, pane)| Some(&pane.process) == saved.focus.as_ref());
    let focus = own.or(named.map(|(id, _)| *id)).or(panes.keys().next().copied())?;
    Some(PanePage {
        number: saved.number,
        name: saved.name.as_deref().and_then(page_name),
        layout: Some(layout),
        focus,
        zoomed: old.as_ref().is_some_and(|old| old.zoomed) && panes.len() > 1,
        broadcast: old.as_ref().is_some_and(|old| old.broadcast),
        panes,
        ..PanePage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::sample::Sample;
    use crate::update::Event;
    use crate::update::tests::{attached, selected};

    fn shared() -> Sample {
        let mut sample = Sample::new(120, 40);
        sample.handle(Event::Settings(Ok("layout = \"shared\"".to_owned())));
        sample
    }

    fn shown(sample: &Sample) -> Vec<&str> {
        let order = sample.model.layout.as_ref().map(Layout::panes).unwrap_or_default();
        order.iter().map(|id| sample.model.panes[id].process.as_str()).collect()
    }

    fn saved(sample: &Sample) -> Event {
        Event::Layout(sample.model.layout_to_save().unwrap())
    }

    #[test]
    fn two_terminals_have_the_same_pages_and_their_own_focus() {
        let (mut one, mut two) = (shared(), shared());
        one.type_in("\x02|2\r\x02-3\r\x02|5\r\x02!\x02,logs\r");
        let effects = two.handle(saved(&one)).to_vec();
        assert_eq!(
            attached(&effects),
            ["p2", "p3"],
            "the pane that was there keeps its connection"
        );
        assert_eq!((shown(&two), selected(&two)), (vec!["p1", "p2", "p3"], "p1"));
        assert_eq!(two.model.pages[1].name.as_deref(), Some("logs"));
        assert!(!two.model.layout_changed, "it is not saved again");
        two.type_in("\x02o\x02Q");
        one.handle(saved(&two));
        assert_eq!((shown(&one), one.model.page), (vec!["p5"], 1), "its own page");
        one.type_in("\x02&y");
        let effects = two.handle(saved(&one)).to_vec();
        assert_eq!((two.model.pages.len(), shown(&two)), (1, vec!["p1", "p3"]));
        assert_eq!(attached(&effects), [""; 0]);
    }

    #[test]
    fn a_removed_page_is_left_and_an_invalid_layout_is_not_applied() {
        let (mut one, mut two) = (shared(), shared());
        one.type_in("\x02|2\r\x02!");
        two.handle(saved(&one));
        two.type_in("\x021");
        one.type_in("\x02&y");
        two.type_in("hunter");
        let effects = two.handle(saved(&one)).to_vec();
        assert_eq!((shown(&two), attached(&effects)), (vec!["p1"], vec!["p1"]));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Leave(_))));
        assert!(matches!(two.model.mode, crate::model::Mode::Interrupted { .. }));
        assert_eq!(two.handle(Event::Layout(SavedLayout::default())), []);
        let mut own = Sample::new(120, 40);
        one.type_in("\x02|2\r");
        assert_eq!(own.handle(saved(&one)), [], "not without the setting");
    }
}
