//! Positions in the output of a process.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A position in the output of a process: the number of bytes that all its runs printed before it. On disk and
/// in answers it is a plain number.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Offset(u64);

impl Offset {
    /// The beginning of the output.
    pub const START: Self = Self(0);

    /// The position after this many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes before this position.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position this many bytes later.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// The number of bytes from `earlier` to this position; 0 if `earlier` is not before it.
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An [`Offset`] that several threads share.
#[derive(Debug, Default)]
pub(crate) struct AtomicOffset(AtomicU64);

impl AtomicOffset {
    pub(crate) const fn new(offset: Offset) -> Self {
        Self(AtomicU64::new(offset.0))
    }

    pub(crate) fn load(&self, ordering: Ordering) -> Offset {
        Offset(self.0.load(ordering))
    }

    pub(crate) fn store(&self, offset: Offset, ordering: Ordering) {
        self.0.store(offset.0, ordering);
    }

    /// Moves it forward to `offset`; never back.
    pub(crate) fn advance(&self, offset: Offset, ordering: Ordering) {
        self.0.fetch_max(offset.0, ordering);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_stored_as_a_plain_number() {
        let offset = Offset::new(1 << 40);
        assert_eq!(serde_json::to_string(&offset).unwrap(), (1_u64 << 40).to_string());
        assert_eq!(serde_json::from_str::<Offset>("7").unwrap(), Offset::new(7));
        assert_eq!(Offset::new(3).bytes_since(Offset::new(5)), 0);
    }
}
