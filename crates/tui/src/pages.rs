//! The pages of a model: their titles, and what is saved of them.

use std::collections::BTreeMap;

use crate::layout::{Layout, PaneId};
use crate::model::Model;
use crate::page::{Pane, PanePage};
use crate::saved_layout::{SavedLayout, SavedNode, SavedPage};

impl Model {
    /// The layout to save for the next attachment; `None` before the first snapshot.
    pub(crate) fn layout_to_save(&self) -> Option<SavedLayout> {
        let current = saved_page(self.pages.get(self.page)?, &self.panes, self.layout.as_ref());
        let current = SavedPage {
            focus: self.focused_pane().map(|pane| pane.process.clone()),
            zoomed: self.zoomed,
            ..current
        };
        let page = |at: usize, page: &PanePage| match at == self.page {
            true => current.clone(),
            false => saved_page(page, &page.panes, page.layout.as_ref()),
        };
        let pages = self.pages.iter().enumerate().map(|(at, other)| page(at, other));
        let pages: Vec<SavedPage> = pages.filter(|page| page.panes.is_some()).collect();
        let is_plain = pages.len() < 2 && current.name.is_none() && current.number == 0;
        self.has_snapshot.then(|| SavedLayout {
            panes: current.panes.clone(),
            focus: current.focus.clone(),
            zoomed: self.zoomed,
            tree_hidden: self.tree_hidden,
            tree_width: self.tree_width,
            pages: if is_plain { Vec::new() } else { pages },
            page: if is_plain { None } else { Some(current.number) },
        })
    }

    /// The pages of the project, each with its focused process. The current one has `true`.
    pub(crate) fn page_titles(&self) -> Vec<(u32, String, bool)> {
        let titles = self.pages.iter().enumerate().map(|(at, page)| {
            let is_current = at == self.page;
            let (panes, focus) = match is_current {
                true => (&self.panes, self.focus),
                false => (&page.panes, page.focus),
            };
            let process = panes.get(&focus).and_then(|pane| self.process(&pane.process));
            let own = || process.map_or_else(|| "new".to_owned(), |process| process.name.clone());
            (page.number, page.name.clone().unwrap_or_else(own), is_current)
        });
        titles.collect()
    }
}

fn saved_page(
    page: &PanePage,
    panes: &BTreeMap<PaneId, Pane>,
    layout: Option<&Layout>,
) -> SavedPage {
    let process = |id| {
        let process = &panes.get(&id)?.process;
        (!process.is_empty()).then(|| process.clone())
    };
    SavedPage {
        number: page.number,
        name: page.name.clone(),
        panes: layout.and_then(|layout| SavedNode::of(layout, &process)),
        focus: process(page.focus),
        zoomed: page.zoomed,
    }
}
