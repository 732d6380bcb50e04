//! Who looks at a process, and which size suits them all.

use std::collections::BTreeMap;

use patterm_screen::Size;
use tokio::sync::watch;

/// A view of a process.
#[derive(Debug)]
struct View {
    /// How much room it has.
    size: Option<Size>,
    /// It wants the size to follow whoever was active last, not the smallest.
    follows_last: bool,
    /// When it was last active, in the order of such events.
    active: u64,
}

/// The views of one process.
#[derive(Debug)]
pub struct Views {
    last: u64,
    views: BTreeMap<u64, View>,
    /// How often any of them was active.
    events: u64,
    /// Up to where its output was there when somebody last looked.
    seen: u64,
    agreed: watch::Sender<Option<Size>>,
}

impl Views {
    /// Nobody looks, and what stands before `seen` is old.
    pub fn new(seen: u64) -> Self {
        let agreed = watch::Sender::new(None);
        Self { last: 0, views: BTreeMap::new(), events: 0, seen, agreed }
    }

    /// A new view; returns its number.
    pub fn enter(&mut self, follows_last: bool) -> u64 {
        self.last += 1;
        self.views.insert(self.last, View { size: None, follows_last, active: 0 });
        self.last
    }

    /// Notes how much room a view has; returns the size that is agreed then.
    pub fn set(&mut self, number: u64, size: Option<Size>) -> Option<Size> {
        if let Some(view) = self.views.get_mut(&number) {
            view.size = size;
        }
        self.touch(number);
        self.agree()
    }

    /// Somebody types in a view; returns the size that is agreed then, where that changes it.
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

    /// A view is gone that has seen all output up to here; returns the size that suits those that
    /// are left.
    pub fn leave(&mut self, number: u64, seen: u64) -> Option<Size> {
        self.views.remove(&number);
        self.seen = self.seen.max(seen);
        self.agree()
    }

    /// The size that suits all, if anybody has said one.
    pub fn agreed(&self) -> Option<Size> {
        *self.agreed.borrow()
    }

    /// Where the output begins that nobody has seen; `None` while somebody looks.
    pub fn unseen_from(&self) -> Option<u64> {
        self.views.is_empty().then_some(self.seen)
    }

    /// Follows that size.
    pub fn watch(&self) -> watch::Receiver<Option<Size>> {
        self.agreed.subscribe()
    }

    /// The smallest in both directions, or that of the last one active where a view wants that. When
    /// the last view leaves, the size stays as it is.
    fn agree(&mut self) -> Option<Size> {
        let sized = || self.views.values().filter_map(|view| Some((view.active, view.size?)));
        let sizes = || sized().map(|(_, size)| size);
        let smallest = sizes().map(|size| size.rows).min().zip(sizes().map(|s| s.columns).min());
        let smallest = smallest.map(|(rows, columns)| Size::new(rows, columns));
        let last = sized().max_by_key(|(active, _)| *active).map(|(_, size)| size);
        let follows_last = self.views.values().any(|view| view.follows_last);
        let agreed = if follows_last { last } else { smallest }.or(self.agreed());
        self.agreed.send_if_modified(|before| {
            let changed = *before != agreed;
            *before = agreed;
            changed
        });
        agreed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_view_decides_and_the_size_stays_when_all_are_gone() {
        let mut views = Views::new(0);
        let (one, two) = (views.enter(false), views.enter(false));
        assert_eq!(views.set(one, Some(Size::new(40, 100))), Some(Size::new(40, 100)));
        assert_eq!(views.set(two, Some(Size::new(50, 80))), Some(Size::new(40, 80)));
        assert_eq!(views.leave(one, 7), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), None, "one still looks");
        assert_eq!(views.leave(two, 9), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), Some(9));
    }
    #[test]
    fn where_a_view_wants_it_the_last_one_active_decides() {
        let mut views = Views::new(0);
        let (large, small) = (Size::new(50, 200), Size::new(24, 80));
        let (one, two) = (views.enter(true), views.enter(false));
        assert_eq!(views.set(one, Some(large)), Some(large));
        assert_eq!(views.set(two, Some(small)), Some(small), "it came last");
        assert_eq!(views.typed(one), Some(large));
        assert_eq!(views.typed(one), None, "nothing changed");
        assert_eq!(views.typed(two), Some(small));
        assert_eq!(views.leave(two, 0), Some(large));
    }
}
