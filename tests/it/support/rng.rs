//! A repeatable random number generator: the same seed gives the same choices.

use std::ops::Range;

/// A random number generator (xorshift64*).
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero is the one state that never changes; neighbouring seeds must not look alike.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.next() >> 16) as usize % range.len()
    }

    /// True once in `times` calls on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.within(0..times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.within(0..choices.len())]
    }
}
