//! The layout that is saved between attachments: the pages with their splits and processes, the focus, the tree.
//! The program that runs the TUI stores it.

use serde::{Deserialize, Serialize};

use crate::layout::{Direction, Layout, PaneId, SHARES};

/// A saved layout. Everything in it is checked when it is restored. Versions without pages read only the
/// current page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLayout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) panes: Option<SavedNode>,
    /// The process with the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<String>,
    #[serde(default)]
    pub(crate) zoomed: bool,
    #[serde(default)]
    pub(crate) tree_hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tree_width: Option<u16>,
    /// All pages, if there are several or the only one has a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pages: Vec<SavedPage>,
    /// The number of the current page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<u32>,
}

/// A saved page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedPage {
    #[serde(default)]
    pub(crate) number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) panes: Option<SavedNode>,
    /// The process with the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<String>,
    #[serde(default)]
    pub(crate) zoomed: bool,
}

/// A pane, by its process, or a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SavedNode {
    Pane { process: String },
    Split { below: bool, share: u16, parts: Box<(SavedNode, SavedNode)> },
}

impl SavedLayout {
    /// Its pages. A file of a version without pages has one.
    pub(crate) fn into_pages(self) -> Vec<SavedPage> {
        if !self.pages.is_empty() {
            return self.pages;
        }
        let Self { panes, focus, zoomed, .. } = self;
        vec![SavedPage { panes, focus, zoomed, ..SavedPage::default() }]
    }
}

impl SavedPage {
    /// Restores the layout; `take` returns the pane for a process, if there is one.
    pub(crate) fn place(&self, mut take: impl FnMut(&str) -> Option<PaneId>) -> Option<Layout> {
        restore(self.panes.as_ref()?, &mut take)
    }
}

impl SavedNode {
    /// A layout by the processes in its panes; `None` if no pane shows one.
    pub(crate) fn of(layout: &Layout, process: &impl Fn(PaneId) -> Option<String>) -> Option<Self> {
        match layout {
            Layout::Pane(id) => process(*id).map(|process| Self::Pane { process }),
            Layout::Split { direction, share, first, second } => {
                match (Self::of(first, process), Self::of(second, process)) {
                    (Some(first), Some(second)) => Some(Self::Split {
                        below: *direction == Direction::Below,
                        share: *share,
                        parts: Box::new((first, second)),
                    }),
                    (one, other) => one.or(other),
                }
            }
        }
    }
}

/// Missing panes leave their space to the others.
fn restore(part: &SavedNode, take: &mut impl FnMut(&str) -> Option<PaneId>) -> Option<Layout> {
    match part {
        SavedNode::Pane { process } => take(process).map(Layout::Pane),
        SavedNode::Split { below, share, parts } => {
            match (restore(&parts.0, take), restore(&parts.1, take)) {
                (Some(first), Some(second)) => Some(Layout::Split {
                    direction: if *below { Direction::Below } else { Direction::Beside },
                    share: (*share).clamp(*SHARES.start(), *SHARES.end()),
                    first: Box::new(first),
                    second: Box::new(second),
                }),
                (one, other) => one.or(other),
            }
        }
    }
}
