//! Times of events without the steps of the wall clock, so that durations are right.

use patterm_wire::events::{EventRecord, parse_time};

/// Turns wall times into times that never go back.
#[derive(Debug, Default)]
pub(super) struct TimeAxis {
    /// How far the wall clock was set forward so far, in milliseconds.
    shift: i64,
    /// The time of the last event.
    last: u64,
    /// Its wall time.
    last_wall: u64,
}

impl TimeAxis {
    /// The time of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The wall time of an event.
    pub(super) fn wall_of(&self, event: &EventRecord) -> u64 {
        parse_time(&event.time).unwrap_or(self.last_wall)
    }

    /// A wall time on this axis, by what is known of the clock so far.
    pub(super) fn of_wall(&self, wall: u64) -> u64 {
        wall.saturating_add_signed(-self.shift)
    }

    /// Goes on to an event; `set_by` says how far the clock was set forward just before it.
    pub(super) fn advance(&mut self, wall: u64, set_by: i64) -> u64 {
        self.shift = self.shift.saturating_add(set_by);
        (self.last, self.last_wall) = (self.last.max(self.of_wall(wall)), wall);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_does_not_change_durations() {
        let mut axis = TimeAxis::default();
        assert_eq!(axis.advance(10_000, 0), 10_000);
        // Set forward by an hour after 2 s, and back by a day after 3 more.
        assert_eq!(axis.advance(3_612_000, 3_600_000), 12_000);
        assert_eq!(axis.advance(3_613_000, 0), 13_000);
        assert_eq!(axis.advance(500_000, -3_115_000), 15_000);
        assert_eq!(axis.of_wall(501_000), 16_000);
    }
}
