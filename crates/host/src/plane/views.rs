//! Who looks at a process, and which size suits them all.

use std::collections::BTreeMap;

use patterm_screen::Size;
use tokio::sync::watch;

/// The views of one process.
#[derive(Debug)]
pub(crate) struct Views {
    last: u64,
    sizes: BTreeMap<u64, Option<Size>>,
    /// Up to where its output was there when somebody last looked.
    seen: u64,
    agreed: watch::Sender<Option<Size>>,
}

impl Views {
    /// Nobody looks, and what stands before `seen` is old.
    pub(crate) fn new(seen: u64) -> Self {
        Self { last: 0, sizes: BTreeMap::new(), seen, agreed: watch::Sender::new(None) }
    }

    /// A new view; returns its number.
    pub(crate) fn enter(&mut self) -> u64 {
        self.last += 1;
        self.sizes.insert(self.last, None);
        self.last
    }

    /// Notes how much room a view has; returns the size that suits all.
    pub(crate) fn set(&mut self, number: u64, size: Option<Size>) -> Option<Size> {
        self.sizes.insert(number, size);
        self.agree()
    }

    /// A view is gone that has seen all output up to here; returns the size that suits those that
    /// are left.
    pub(crate) fn leave(&mut self, number: u64, seen: u64) -> Option<Size> {
        self.sizes.remove(&number);
        self.seen = self.seen.max(seen);
        self.agree()
    }

    /// The size that suits all, if anybody has said one.
    pub(crate) fn agreed(&self) -> Option<Size> {
        *self.agreed.borrow()
    }

    /// Where the output begins that nobody has seen; `None` while somebody looks.
    pub(crate) fn unseen_from(&self) -> Option<u64> {
        self.sizes.is_empty().then_some(self.seen)
    }

    /// Follows that size.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<Size>> {
        self.agreed.subscribe()
    }

    /// The smallest in both directions. When the last view leaves, the size stays as it is.
    fn agree(&mut self) -> Option<Size> {
        let sizes = || self.sizes.values().flatten();
        let smallest = sizes().map(|size| size.rows).min().zip(sizes().map(|s| s.columns).min());
        let agreed = smallest.map(|(rows, columns)| Size::new(rows, columns)).or(self.agreed());
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
        let (one, two) = (views.enter(), views.enter());
        assert_eq!(views.set(one, Some(Size::new(40, 100))), Some(Size::new(40, 100)));
        assert_eq!(views.set(two, Some(Size::new(50, 80))), Some(Size::new(40, 80)));
        assert_eq!(views.leave(one, 7), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), None, "one still looks");
        assert_eq!(views.leave(two, 9), Some(Size::new(50, 80)));
        assert_eq!(views.unseen_from(), Some(9));
    }
}
