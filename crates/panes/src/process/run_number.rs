//! The number of a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Counts the runs of one process. On disk and on the wire it is a plain number.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RunNumber(u64);

impl RunNumber {
    /// The process was never started.
    pub const NONE: Self = Self(0);

    /// The first run.
    pub const FIRST: Self = Self(1);

    /// The run with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether it is [`Self::NONE`].
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// The run after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}
