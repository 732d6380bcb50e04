//! The layout of panes: a tree of splits, and the rectangles that result from it.

use crate::canvas::Rect;

/// The number of a pane.
pub(crate) type PaneId = u32;

/// The direction of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Side by side.
    Beside,
    /// One above the other.
    Below,
}

/// Panes and splits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    Pane(PaneId),
    Split {
        direction: Direction,
        /// The share of the first, in thousandths.
        share: u16,
        first: Box<Layout>,
        second: Box<Layout>,
    },
}

/// The line between two panes, and the area that both share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Divider {
    pub(crate) line: Rect,
    pub(crate) area: Rect,
    pub(crate) direction: Direction,
    /// The path to its split: first or second, from the root.
    pub(crate) path: Vec<bool>,
}

/// The smallest share: no pane vanishes, but a preset layout may give the first of many panes little space.
pub(crate) const SHARES: std::ops::RangeInclusive<u16> = 40..=960;

impl Layout {
    /// All panes, in reading order.
    pub(crate) fn panes(&self) -> Vec<PaneId> {
        match self {
            Self::Pane(id) => vec![*id],
            Self::Split { first, second, .. } => [first.panes(), second.panes()].concat(),
        }
    }

    /// Splits a pane.
    pub(crate) fn split(&mut self, at: PaneId, direction: Direction, new: PaneId) {
        match self {
            Self::Pane(id) if *id == at => {
                let (first, second) = (Box::new(Self::Pane(at)), Box::new(Self::Pane(new)));
                *self = Self::Split { direction, share: 500, first, second };
            }
            Self::Pane(_) => {}
            Self::Split { first, second, .. } => {
                first.split(at, direction, new);
                second.split(at, direction, new);
            }
        }
    }

    /// Removes a pane; `None` if nothing is left.
    pub(crate) fn without(self, gone: PaneId) -> Option<Self> {
        match self {
            Self::Pane(id) => (id != gone).then_some(self),
            Self::Split { direction, share, first, second } => {
                match (first.without(gone), second.without(gone)) {
                    (Some(first), Some(second)) => {
                        let (first, second) = (Box::new(first), Box::new(second));
                        Some(Self::Split { direction, share, first, second })
                    }
                    (one, other) => one.or(other),
                }
            }
        }
    }

    /// The rectangle of each pane, and the lines between them.
    pub(crate) fn place(&self, area: Rect) -> (Vec<(PaneId, Rect)>, Vec<Divider>) {
        let (mut panes, mut dividers) = (Vec::new(), Vec::new());
        self.place_in(area, &mut Vec::new(), &mut panes, &mut dividers);
        (panes, dividers)
    }

    fn place_in(
        &self,
        area: Rect,
        path: &mut Vec<bool>,
        panes: &mut Vec<(PaneId, Rect)>,
        dividers: &mut Vec<Divider>,
    ) {
        let Self::Split { direction, share, first, second } = self else {
            panes.extend(self.panes().into_iter().map(|id| (id, area)));
            return;
        };
        let part = |room: u16| {
            let part = u32::from(room) * u32::from(*share) / 1000;
            (part as u16).max(1).min(room.saturating_sub(1))
        };
        let (one, line, other) = match direction {
            Direction::Beside => {
                let width = part(area.width.saturating_sub(1));
                let x = area.x + width;
                let rest = area.width.saturating_sub(width + 1);
                (
                    Rect { width, ..area },
                    Rect { x, width: 1.min(area.width), ..area },
                    Rect { x: x + 1, width: rest, ..area },
                )
            }
            // No line: the title of the second divides them.
            Direction::Below => {
                let height = part(area.height);
                let (one, other) = area.cut_top(height);
                (one, Rect { height: 1.min(other.height), ..other }, other)
            }
        };
        dividers.push(Divider { line, area, direction: *direction, path: path.clone() });
        for (child, area, second) in [(first, one, false), (second, other, true)] {
            path.push(second);
            child.place_in(area, path, panes, dividers);
            path.pop();
        }
    }

    /// Moves a divider to a position.
    pub(crate) fn move_line(&mut self, divider: &Divider, x: u16, y: u16) {
        let mut node = self;
        for second_wanted in &divider.path {
            let Self::Split { first, second, .. } = node else { return };
            node = if *second_wanted { second } else { first };
        }
        if let Self::Split { share, direction, .. } = node {
            let (at, room) = match direction {
                Direction::Beside => {
                    (x.saturating_sub(divider.area.x), divider.area.width.saturating_sub(1))
                }
                Direction::Below => (y.saturating_sub(divider.area.y), divider.area.height),
            };
            // Rounded up, so that the share puts the line exactly there.
            let thousandths = (u32::from(at) * 1000).div_ceil(u32::from(room.max(1)));
            *share = (thousandths as u16).clamp(*SHARES.start(), *SHARES.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_share_the_area_and_give_it_back() {
        let mut layout = Layout::Pane(1);
        layout.split(1, Direction::Beside, 2);
        layout.split(2, Direction::Below, 3);
        let (panes, dividers) = layout.place(Rect::new(0, 0, 101, 40));
        assert_eq!(
            panes,
            [
                (1, Rect::new(0, 0, 50, 40)),
                (2, Rect::new(51, 0, 50, 20)),
                (3, Rect::new(51, 20, 50, 20)),
            ]
        );
        assert_eq!(dividers[0].line, Rect::new(50, 0, 1, 40));
        layout.move_line(&dividers[0], 30, 0);
        layout.move_line(&dividers[1], 0, 10);
        let (panes, _) = layout.place(Rect::new(0, 0, 101, 40));
        assert_eq!(panes[0].1.width, 30);
        assert_eq!(panes[1].1.height, 10);
        let layout = layout.without(2).unwrap();
        assert_eq!(layout.panes(), [1, 3]);
        assert_eq!(Layout::Pane(3).without(3), None);
    }

    #[test]
    fn no_area_is_too_small() {
        let mut layout = Layout::Pane(1);
        for new in 2..12 {
            layout.split(new - 1, Direction::Beside, new);
            layout.split(new - 1, Direction::Below, new + 100);
        }
        for (width, height) in [(0, 0), (1, 1), (2, 1), (20, 5)] {
            for (_, rect) in layout.place(Rect::new(0, 0, width, height)).0 {
                assert!(rect.right() <= width + 12 && rect.bottom() <= height + 12);
            }
        }
    }
}
