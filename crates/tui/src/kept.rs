//! What is kept of the layout between two visits: the splits, the processes in them, the focus, the
//! tree. It is a value; whoever runs us keeps it.

use serde::{Deserialize, Serialize};

use crate::layout::{Direction, Layout, PaneId, SHARES};
use crate::model::Model;

/// A layout as it is kept. Everything in it is checked when it comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    panes: Option<Part>,
    /// The process with the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    #[serde(default)]
    zoomed: bool,
    #[serde(default)]
    tree_hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree_width: Option<u16>,
}

/// A pane, by its process, or a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    Pane { process: String },
    Split { below: bool, share: u16, parts: Box<(Part, Part)> },
}

impl Kept {
    /// What there is to keep; nothing before the project was seen.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let panes = model.layout.as_ref().and_then(|layout| part(model, layout));
        model.begun.then(|| Self {
            panes,
            focus: model.focused_pane().map(|pane| pane.process.clone()),
            zoomed: model.zoomed,
            tree_hidden: model.tree_hidden,
            tree_width: model.tree_width,
        })
    }

    /// The processes of the panes, in reading order, with the number that each pane gets.
    pub(crate) fn place(&self, mut take: impl FnMut(&str) -> Option<PaneId>) -> Option<Layout> {
        lay(self.panes.as_ref()?, &mut take)
    }

    pub(crate) fn focus(&self) -> Option<&str> {
        self.focus.as_deref()
    }

    pub(crate) fn zoomed(&self) -> bool {
        self.zoomed
    }

    pub(crate) fn tree(&self) -> (bool, Option<u16>) {
        (self.tree_hidden, self.tree_width)
    }
}

fn part(model: &Model, layout: &Layout) -> Option<Part> {
    match layout {
        Layout::Pane(id) => {
            let process = model.panes.get(id)?.process.clone();
            (!process.is_empty()).then_some(Part::Pane { process })
        }
        Layout::Split { direction, share, first, second } => {
            match (part(model, first), part(model, second)) {
                (Some(first), Some(second)) => Some(Part::Split {
                    below: *direction == Direction::Below,
                    share: *share,
                    parts: Box::new((first, second)),
                }),
                (one, other) => one.or(other),
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
