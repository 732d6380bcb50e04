//! When a request that failed is tried again: with growing pauses, for about an hour in all.

use std::time::Duration;

/// The first pause, and the longest: it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// Tries in all: with these pauses, as long as an event may wait.
pub(crate) const MOST_TRIES: u32 = 36;

/// The tries of one request.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Counts a failed try; returns the pause before the next one, or `None` if there is none.
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        let doublings = self.0;
        self.0 += 1;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        (self.0 < MOST_TRIES).then(|| FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::OLDEST;

    #[test]
    fn the_pauses_grow_and_end_after_about_an_hour() {
        let mut tries = Tries::default();
        let pauses: Vec<_> = std::iter::from_fn(|| tries.pause()).collect();
        let first: Vec<_> = pauses.iter().take(9).map(Duration::as_secs).collect();
        assert_eq!(first, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!(pauses.len() + 1, 36);
        let whole: Duration = pauses.iter().sum();
        assert!((OLDEST - LONGEST_PAUSE..=OLDEST).contains(&whole), "{whole:?}");
    }
}
