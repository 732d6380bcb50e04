//! Arranging panes: fixed arrangements, swapping, rotating, directions and resizing.

use crate::canvas::Rect;
use crate::layout::{Direction, Layout, PaneId};

/// A side of a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Down,
    Up,
    Right,
}

impl Side {
    /// In the order of the settings, which is that of `hjkl`.
    pub(crate) const ALL: [Self; 4] = [Self::Left, Self::Down, Self::Up, Self::Right];

    fn axis(self) -> Direction {
        match self {
            Self::Left | Self::Right => Direction::Beside,
            Self::Up | Self::Down => Direction::Below,
        }
    }
}

/// An arrangement of any number of panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrangement {
    EvenHorizontal,
    EvenVertical,
    MainHorizontal,
    MainVertical,
    Tiled,
}

impl Arrangement {
    /// In the order in which they are cycled through.
    pub(crate) const ALL: [Self; 5] = [
        Self::EvenHorizontal,
        Self::EvenVertical,
        Self::MainHorizontal,
        Self::MainVertical,
        Self::Tiled,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EvenHorizontal => "even-horizontal",
            Self::EvenVertical => "even-vertical",
            Self::MainHorizontal => "main-horizontal",
            Self::MainVertical => "main-vertical",
            Self::Tiled => "tiled",
        }
    }

    /// The panes in this arrangement; `None` without panes.
    pub(crate) fn arrange(self, panes: &[PaneId]) -> Option<Layout> {
        let all = || panes.iter().map(|id| Layout::Pane(*id)).collect::<Vec<_>>();
        let main = |direction: Direction, others: Direction| {
            let mut rest = all().into_iter();
            let first = rest.next()?;
            Some(match even(others, rest.collect()) {
                Some(rest) => join(direction, MAIN_SHARE, first, rest),
                None => first,
            })
        };
        match self {
            Self::EvenHorizontal => even(Direction::Beside, all()),
            Self::EvenVertical => even(Direction::Below, all()),
            Self::MainHorizontal => main(Direction::Below, Direction::Beside),
            Self::MainVertical => main(Direction::Beside, Direction::Below),
            Self::Tiled => {
                let rows = panes.chunks(tiled_columns(panes.len()));
                let rows = rows.filter_map(|row| {
                    even(Direction::Beside, row.iter().map(|id| Layout::Pane(*id)).collect())
                });
                even(Direction::Below, rows.collect())
            }
        }
    }

    /// The arrangement after the current one; the first if the panes are in none.
    pub(crate) fn after(layout: &Layout) -> Self {
        let panes = layout.panes();
        let is_in = |arrangement: &Self| arrangement.arrange(&panes).as_ref() == Some(layout);
        let at = Self::ALL.iter().position(is_in);
        // With two panes some presets look the same: continue to one that looks different.
        let from = at.map_or(0, |at| at + 1);
        let order = (from..from + Self::ALL.len()).map(|at| Self::ALL[at % Self::ALL.len()]);
        order.into_iter().find(|arrangement| !is_in(arrangement)).unwrap_or(Self::ALL[0])
    }
}

/// The share of the main pane, in thousandths.
const MAIN_SHARE: u16 = 600;

/// As many columns as rows, or one fewer.
fn tiled_columns(panes: usize) -> usize {
    let (mut rows, mut columns) = (1, 1);
    while rows * columns < panes {
        rows += 1;
        if rows * columns < panes {
            columns += 1;
        }
    }
    columns
}

fn join(direction: Direction, share: u16, first: Layout, second: Layout) -> Layout {
    Layout::Split { direction, share, first: Box::new(first), second: Box::new(second) }
}

/// The parts in a row, all with the same share.
fn even(direction: Direction, parts: Vec<Layout>) -> Option<Layout> {
    let mut parts = parts.into_iter().rev();
    let mut all = parts.next()?;
    for (at, part) in parts.enumerate() {
        // Rounded up, because places are rounded down.
        let share = 1000_u16.div_ceil(u16::try_from(at).unwrap_or(u16::MAX).saturating_add(2));
        all = join(direction, share, part, all);
    }
    Some(all)
}

/// The keys of the labels on panes, in their order; as many as there can be panes.
const LABELS: &str = "0123456789abcdef";

impl Layout {
    /// The panes, each with the key of its label.
    pub(crate) fn labels(&self) -> Vec<(char, PaneId)> {
        LABELS.chars().zip(self.panes()).collect()
    }

    /// Replaces panes by others.
    fn map(&mut self, other: &impl Fn(PaneId) -> PaneId) {
        match self {
            Self::Pane(id) => *id = other(*id),
            Self::Split { first, second, .. } => {
                first.map(other);
                second.map(other);
            }
        }
    }

    /// Exchanges two panes.
    pub(crate) fn swap(&mut self, one: PaneId, two: PaneId) {
        self.map(&|id| match id {
            id if id == one => two,
            id if id == two => one,
            id => id,
        });
    }

    /// Moves every pane to the place of the one before it.
    pub(crate) fn rotate(&mut self) {
        let order = self.panes();
        self.map(&|id| {
            let at = order.iter().position(|pane| *pane == id).unwrap_or(0);
            order[(at + 1) % order.len()]
        });
    }

    /// The path to a pane from the root: first or second at each split.
    fn path_to(&self, pane: PaneId) -> Option<Vec<bool>> {
        match self {
            Self::Pane(id) => (*id == pane).then(Vec::new),
            Self::Split { first, second, .. } => {
                let below = |part: &Self, is_second: bool| {
                    part.path_to(pane).map(|path| [vec![is_second], path].concat())
                };
                below(first, false).or_else(|| below(second, true))
            }
        }
    }

    /// Moves the line to the right of a pane or below it; if there is none, the line on its other side.
    pub(crate) fn resize(&mut self, area: Rect, pane: PaneId, side: Side, cells: u16) {
        let Some(path) = self.path_to(pane) else { return };
        let (_, dividers) = self.place(area);
        let around = dividers
            .iter()
            .filter(|divider| divider.direction == side.axis() && path.starts_with(&divider.path));
        let nearest = |is_before: bool| {
            let lines = around.clone().filter(|line| path.get(line.path.len()) == Some(&is_before));
            lines.max_by_key(|line| line.path.len())
        };
        let Some(line) = nearest(false).or_else(|| nearest(true)) else { return };
        let (x, y) = (line.line.x, line.line.y);
        match side {
            Side::Left => self.move_line(line, x.saturating_sub(cells), y),
            Side::Right => self.move_line(line, x.saturating_add(cells), y),
            Side::Up => self.move_line(line, x, y.saturating_sub(cells)),
            Side::Down => self.move_line(line, x, y.saturating_add(cells)),
        }
    }

    /// The pane on a side of another: the one that shares most of the edge, or the `preferred` one if it shares
    /// some. At the edge of the area, the panes at the opposite edge follow.
    pub(crate) fn beside(
        &self,
        area: Rect,
        pane: PaneId,
        side: Side,
        preferred: PaneId,
    ) -> Option<PaneId> {
        let (places, _) = self.place(area);
        let (_, from) = *places.iter().find(|(id, _)| *id == pane)?;
        let shared = |room: &Rect| match side.axis() {
            Direction::Beside => common(from.y, from.bottom(), room.y, room.bottom()),
            Direction::Below => common(from.x, from.right(), room.x, room.right()),
        };
        // The distance from edge to edge in this direction; beyond the edge it wraps around to the other side.
        let away = |room: &Rect| {
            let (from_edge, to_edge, length) = match side {
                Side::Left => (room.right(), from.x, area.width),
                Side::Right => (from.right(), room.x, area.width),
                Side::Up => (room.bottom(), from.y, area.height),
                Side::Down => (from.bottom(), room.y, area.height),
            };
            let (from_edge, to_edge) = (u32::from(from_edge), u32::from(to_edge));
            match to_edge.checked_sub(from_edge) {
                Some(away) => away,
                None => (to_edge + 2 * u32::from(length)).saturating_sub(from_edge),
            }
        };
        let others = || places.iter().filter(|(id, room)| *id != pane && shared(room) > 0);
        let nearest = others().map(|(_, room)| away(room)).min()?;
        let next = others().filter(|(_, room)| away(room) == nearest);
        let best = next.max_by_key(|(id, room)| (*id == preferred, shared(room)));
        best.map(|(id, _)| *id)
    }
}

/// The length of the overlap of two ranges.
fn common(from: u16, to: u16, other_from: u16, other_to: u16) -> u16 {
    to.min(other_to).saturating_sub(from.max(other_from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Rect = Rect { x: 10, y: 0, width: 101, height: 40 };

    fn rooms(layout: &Layout) -> Vec<(PaneId, (u16, u16, u16, u16))> {
        let (places, _) = layout.place(AREA);
        places.into_iter().map(|(id, r)| (id, (r.x, r.y, r.width, r.height))).collect()
    }

    #[test]
    fn presets_give_every_pane_its_share() {
        let even = Arrangement::EvenHorizontal.arrange(&[1, 2, 3]).unwrap();
        let widths: Vec<u16> = rooms(&even).into_iter().map(|(_, room)| room.2).collect();
        assert_eq!(widths, [33, 33, 33]);
        let stacked = Arrangement::EvenVertical.arrange(&[1, 2, 3, 4]).unwrap();
        assert!(rooms(&stacked).iter().all(|(_, room)| room.3 == 10), "{stacked:?}");
        let main = Arrangement::MainVertical.arrange(&[1, 2, 3]).unwrap();
        assert_eq!(
            rooms(&main),
            [(1, (10, 0, 60, 40)), (2, (71, 0, 40, 20)), (3, (71, 20, 40, 20))]
        );
        let tiled = Arrangement::Tiled.arrange(&[1, 2, 3, 4, 5]).unwrap();
        assert_eq!(rooms(&tiled)[4], (5, (10, 26, 101, 14)), "the last row has one pane");
        assert_eq!(Arrangement::Tiled.arrange(&[]), None);
        for arrangement in Arrangement::ALL {
            assert_eq!(arrangement.arrange(&[7]), Some(Layout::Pane(7)));
        }
    }

    #[test]
    fn presets_are_cycled_and_never_look_the_same() {
        let mut layout = Arrangement::EvenHorizontal.arrange(&[1, 2]).unwrap();
        for _ in 0..8 {
            let next = Arrangement::after(&layout).arrange(&layout.panes()).unwrap();
            assert_ne!(next, layout);
            layout = next;
        }
        let own = Layout::Pane(3);
        assert_eq!(Arrangement::after(&own), Arrangement::EvenHorizontal);
    }

    #[test]
    fn panes_change_places() {
        let mut layout = Arrangement::MainVertical.arrange(&[1, 2, 3]).unwrap();
        layout.swap(1, 3);
        assert_eq!(layout.panes(), [3, 2, 1]);
        layout.rotate();
        assert_eq!(layout.panes(), [2, 1, 3]);
        layout.swap(9, 2);
        assert_eq!(layout.panes(), [9, 1, 3]);
    }

    #[test]
    fn directions_follow_what_is_on_the_screen() {
        // 1 | 2
        //   | 3
        let layout = Arrangement::MainVertical.arrange(&[1, 2, 3]).unwrap();
        let go = |from, side, preferred| layout.beside(AREA, from, side, preferred);
        assert_eq!(go(2, Side::Left, 0), Some(1));
        assert_eq!(go(2, Side::Down, 0), Some(3));
        assert_eq!(go(1, Side::Right, 3), Some(3), "back to where the focus came from");
        assert_eq!(go(1, Side::Right, 2), Some(2));
        assert_eq!(go(1, Side::Left, 2), Some(2), "around the edge");
        assert_eq!(go(3, Side::Down, 0), Some(2));
        assert_eq!(go(1, Side::Up, 0), None, "it has the whole height");
    }

    #[test]
    fn the_nearest_line_moves_in_the_direction() {
        let mut layout = Arrangement::MainVertical.arrange(&[1, 2, 3]).unwrap();
        layout.resize(AREA, 1, Side::Left, 1);
        assert_eq!(rooms(&layout)[0].1.2, 59);
        layout.resize(AREA, 3, Side::Right, 5);
        assert_eq!(rooms(&layout)[0].1.2, 64, "a pane at the edge moves the line before it");
        layout.resize(AREA, 2, Side::Down, 2);
        layout.resize(AREA, 3, Side::Up, 1);
        assert_eq!(rooms(&layout)[1].1.3, 21);
        layout.resize(AREA, 1, Side::Up, 3);
        layout.resize(AREA, 9, Side::Up, 3);
        assert_eq!(rooms(&layout)[1].1.3, 21, "there is no such line");
    }

    #[test]
    fn no_size_or_number_of_panes_causes_a_panic() {
        for count in 1..=16 {
            let panes: Vec<PaneId> = (1..=count).collect();
            for arrangement in Arrangement::ALL {
                let mut layout = arrangement.arrange(&panes).unwrap();
                for (width, height) in [(0, 0), (1, 1), (3, 2), (200, 50)] {
                    let area = Rect::new(5, 0, width, height);
                    for side in Side::ALL {
                        layout.resize(area, 1, side, 5);
                        layout.beside(area, 1, side, 0);
                    }
                }
                layout.rotate();
                Arrangement::after(&layout);
                assert_eq!(layout.panes().len(), panes.len());
            }
        }
    }
}
