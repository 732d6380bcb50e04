//! The layout that is saved between two attachments: the splits, the processes in them, the focus, the
//! tree. It is a value; the program that runs the TUI stores it.

use serde::{Deserialize, Serialize};

use crate::layout::{Direction, Layout, PaneId, SHARES};

/// A layout as it is saved. Everything in it is checked when it is restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLayout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) panes: Option<Part>,
    /// The process with the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<String>,
    #[serde(default)]
    pub(crate) zoomed: bool,
    #[serde(default)]
    pub(crate) tree_hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tree_width: Option<u16>,
}

/// A pane, by its process, or a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Part {
    Pane { process: String },
    Split { below: bool, share: u16, parts: Box<(Part, Part)> },
}

impl SavedLayout {
    /// The processes of the panes, in reading order, with the number that each pane gets.
    pub(crate) fn place(&self, mut take: impl FnMut(&str) -> Option<PaneId>) -> Option<Layout> {
        lay(self.panes.as_ref()?, &mut take)
    }
}

impl Part {
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

/// What is gone leaves its room to the rest.
fn lay(part: &Part, take: &mut impl FnMut(&str) -> Option<PaneId>) -> Option<Layout> {
    match part {
        Part::Pane { process } => take(process).map(Layout::Pane),
        Part::Split { below, share, parts } => match (lay(&parts.0, take), lay(&parts.1, take)) {
            (Some(first), Some(second)) => Some(Layout::Split {
                direction: if *below { Direction::Below } else { Direction::Beside },
                share: (*share).clamp(*SHARES.start(), *SHARES.end()),
                first: Box::new(first),
                second: Box::new(second),
            }),
            (one, other) => one.or(other),
        },
    }
}
