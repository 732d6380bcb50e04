//! The time of output. It is the wall clock, and never goes back: while the wall clock is behind an earlier time,
//! because somebody has set it back, the time continues from there with the time since boot. So output is in order,
//! and its distances are right; when the wall clock has caught up, both are the same again.

use patterm_store::clock::Clock;

/// How far the time of earlier output may be ahead of the wall clock. Clocks are set back by seconds, or by hours if
/// the time zone was wrong; one that was further ahead was wrong, and must not give its time to all later output.
const MOST_AHEAD_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(super) struct OutputClock {
    clock: Clock,
    /// The last time.
    last_ms: u64,
    /// While the wall clock is behind: a time, and the time since boot that it belongs to.
    behind: Option<(u64, u64)>,
}

impl OutputClock {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, last_ms: 0, behind: None }
    }

    /// Continues after output of an earlier server, unless its time must be wrong.
    pub(super) fn continue_after(&mut self, last_ms: u64) {
        let is_possible = last_ms <= self.clock.wall_ms().saturating_add(MOST_AHEAD_MS);
        if last_ms > self.last_ms && is_possible {
            (self.last_ms, self.behind) = (last_ms, None);
        }
    }

    /// The time now. The reader asks for it at every turn, so usually only the wall clock is read.
    pub(super) fn now(&mut self) -> u64 {
        let wall_ms = self.clock.wall_ms();
        if wall_ms >= self.last_ms {
            (self.last_ms, self.behind) = (wall_ms, None);
            return wall_ms;
        }
        let up_ms = self.clock.now().up_ms;
        let (from_ms, from_up_ms) = *self.behind.get_or_insert((self.last_ms, up_ms));
        self.last_ms = from_ms.saturating_add(up_ms.saturating_sub(from_up_ms)).max(self.last_ms);
        self.last_ms
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use patterm_store::clock::Moment;
    use tokio::sync::watch;

    use super::*;

    const DAY: u64 = 86_400_000;

    #[test]
    fn a_clock_that_is_set_back_continues_and_catches_up() {
        let moment = |up_ms, wall_ms| Moment { boot: "b".into(), up_ms, wall_ms };
        let clock = Arc::new(watch::Sender::new(moment(1_000, 100 * DAY)));
        let mut output = OutputClock::new(Clock::Fake(clock.clone()));
        let mut at = |up_ms, wall_ms| {
            clock.send_replace(moment(up_ms, wall_ms));
            output.now()
        };
        assert_eq!(at(1_000, 100 * DAY), 100 * DAY);
        // Back by a day.
        assert_eq!(at(1_500, 99 * DAY), 100 * DAY);
        assert_eq!(at(2_500, 99 * DAY + 1_000), 100 * DAY + 1_000);
        // Set back again.
        assert_eq!(at(3_500, 90 * DAY), 100 * DAY + 2_000);
        assert_eq!(at(DAY + 1_500, 91 * DAY), 101 * DAY);
        // It has caught up: somebody has set it right.
        assert_eq!(at(DAY + 6_000, 102 * DAY), 102 * DAY);
        assert_eq!(at(DAY + 7_000, 102 * DAY + 1_000), 102 * DAY + 1_000);
    }

    #[test]
    fn the_time_continues_after_an_earlier_server() {
        let now = Moment { boot: "b".into(), up_ms: 50, wall_ms: 99 * DAY };
        let clock = Arc::new(watch::Sender::new(now.clone()));
        let mut output = OutputClock::new(Clock::Fake(clock.clone()));
        output.continue_after(100 * DAY);
        output.continue_after(98 * DAY);
        assert_eq!(output.now(), 100 * DAY);
        clock.send_replace(Moment { up_ms: 80, wall_ms: 99 * DAY + 30, ..now });
        assert_eq!(output.now(), 100 * DAY + 30);
    }

    #[test]
    fn a_time_that_must_be_wrong_does_not_spread() {
        let now = Moment { boot: "b".into(), up_ms: 50, wall_ms: 99 * DAY };
        let mut output = OutputClock::new(Clock::Fake(Arc::new(watch::Sender::new(now))));
        output.continue_after(100 * DAY + 1);
        output.continue_after(u64::MAX);
        assert_eq!(output.now(), 99 * DAY);
    }
}
