//! The clients that show a process, and the size that suits all of them.

use std::collections::BTreeMap;

use patterm_screen::Size;

use crate::offset::Offset;

/// A view of a process.
#[derive(Debug)]
struct View {
    /// The space it has.
    size: Option<Size>,
    /// It wants the size to follow the view that was active last, not the smallest.
    follows_last: bool,
    /// When it was last active, as a value of [`Views::events`].
    active: u64,
}

/// The views of one process.
#[derive(Debug)]
pub struct Views {
    last: u64,
    views: BTreeMap<u64, View>,
    /// Counts the times that any view was active.
    events: u64,
    /// The end of the output when the last view left.
    seen: Offset,
    agreed: Option<Size>,
}

impl Views {
    /// No views; the output before `seen` counts as seen.
    pub fn new(seen: Offset) -> Self {
        Self { last: 0, views: BTreeMap::new(), events: 0, seen, agreed: None }
    }

    /// Adds a view; returns its number.
    pub fn enter(&mut self, follows_last: bool) -> u64 {
        self.last += 1;
        self.views.insert(self.last, View { size: None, follows_last, active: 0 });
        self.last
    }

    /// Sets the space that a view has; returns the agreed size.
    pub fn set(&mut self, number: u64, size: Option<Size>) -> Option<Size> {
        if let Some(view) = self.views.get_mut(&number) {
            view.size = size;
        }
        self.touch(number);
        self.agree()
    }

    /// A person typed in a view; returns the agreed size if that changed it.
    pub fn typed(&mut self, number: u64) -> Option<Size> {
        self.touch(number);
        let before = self.agreed();
        self.agree().filter(|agreed| Some(*agreed) != before)
    }

    fn touch(&mut self, number: u64) {
        self.events += 1;
        if let Some(view) = self.views.get_mut(&number) {
            view.active = self.events;
        }
    }

    /// Removes a view that has shown all output before `seen`; returns the size that suits the others.
    pub fn leave(&mut self, number: u64, seen: Offset) -> Option<Size> {
        self.views.remove(&number);
        self.seen = self.seen.max(seen);
        self.agree()
    }

    /// The size that suits all views, if any of them has a size.
    pub fn agreed(&self) -> Option<Size> {
        self.agreed
    }

    /// The output from this offset on was never shown; `None` while there is a view.
    pub fn unseen_from(&self) -> Option<Offset> {
        self.views.is_empty().then_some(self.seen)
    }

    /// The smallest size in both directions, or that of the view that was active last if a view wants that. When the
    /// last view leaves, the size stays.
    fn agree(&mut self) -> Option<Size> {
        let sized = || self.views.values().filter_map(|view| Some((view.active, view.size?)));
        let sizes = || sized().map(|(_, size)| size);
        let smallest = sizes().map(|size| size.rows).min().zip(sizes().map(|s| s.columns).min());
        let smallest = smallest.map(|(rows, columns)| Size::new(rows, columns));
        let last = sized().max_by_key(|(active, _)| *active).map(|(_, size)| size);
        let follows_last = self.views.values().any(|view| view.follows_last);
        self.agreed = if follows_last { last } else { smallest }.or(self.agreed);
        self.agreed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_view_decides_and_the_size_stays_when_all_are_gone() {
        let mut views = Views::new(Offset::START);
        let (one, two) = (views.enter(false), views.enter(false));
        assert_eq!(views.set(one, Some(Size::new(40, 100))), Some(Size::new(40, 100)));
        assert_eq!(views.set(two, Some(Size::new(50, 80))), Some(Size::new(40, 80)));
        assert_eq!(views.leave(one, Offset::new(7)), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), None, "one view is left");
        assert_eq!(views.leave(two, Offset::new(9)), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), Some(Offset::new(9)));
    }

    #[test]
    fn the_view_that_was_active_last_decides_if_a_view_wants_that() {
        let mut views = Views::new(Offset::START);
        let (large, small) = (Size::new(50, 200), Size::new(24, 80));
        let (one, two) = (views.enter(true), views.enter(false));
        assert_eq!(views.set(one, Some(large)), Some(large));
        assert_eq!(views.set(two, Some(small)), Some(small), "it came last");
        assert_eq!(views.typed(one), Some(large));
        assert_eq!(views.typed(one), None, "nothing changed");
        assert_eq!(views.typed(two), Some(small));
        assert_eq!(views.leave(two, Offset::START), Some(large));
    }
}
