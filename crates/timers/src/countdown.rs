//! A countdown: it runs on the clock of the current boot, across a reboot on the wall clock,
//! and stops while it is held.

use serde::{Deserialize, Serialize};

use patterm_store::clock::Moment;

/// A countdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Countdown {
    /// The requested time.
    pub(crate) asked_ms: u64,
    #[serde(flatten)]
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Until(Deadline),
    HeldWithMs(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Deadline {
    /// The boot that `up_ms` belongs to.
    boot: String,
    up_ms: u64,
    wall_ms: u64,
    /// The time left when the deadline was recorded: the upper bound if a clock was set back.
    left_ms: u64,
}

impl Deadline {
    fn after(now: &Moment, left_ms: u64) -> Self {
        Self {
            boot: now.boot.to_string(),
            // The moment is truncated to whole milliseconds, so add the one in progress.
            up_ms: now.up_ms.saturating_add(1).saturating_add(left_ms),
            wall_ms: now.wall_ms.saturating_add(left_ms),
            left_ms,
        }
    }

    fn is_of(&self, now: &Moment) -> bool {
        !self.boot.is_empty() && *self.boot == *now.boot
    }

    fn left_ms(&self, now: &Moment) -> u64 {
        let left = match self.is_of(now) {
            true => self.up_ms.saturating_sub(now.up_ms),
            false => self.wall_ms.saturating_sub(now.wall_ms),
        };
        left.min(self.left_ms)
    }
}

impl Countdown {
    /// Starts a countdown.
    pub(crate) fn begin(now: &Moment, ms: u64) -> Self {
        Self { asked_ms: ms, state: State::Until(Deadline::after(now, ms)) }
    }

    /// The time left.
    pub fn left_ms(&self, now: &Moment) -> u64 {
        match &self.state {
            State::Until(deadline) => deadline.left_ms(now),
            State::HeldWithMs(left) => *left,
        }
    }

    /// When it ends, as time since boot; `None` while it is held.
    pub(crate) fn due(&self) -> Option<u64> {
        match &self.state {
            State::Until(deadline) => Some(deadline.up_ms),
            State::HeldWithMs(_) => None,
        }
    }

    pub(crate) fn is_over(&self, now: &Moment) -> bool {
        self.due().is_some_and(|due| now.up_ms >= due)
    }

    /// Stops it, and keeps the time left.
    pub(crate) fn hold(&mut self, now: &Moment) {
        self.state = State::HeldWithMs(self.left_ms(now));
    }

    /// Continues it.
    pub(crate) fn release(&mut self, now: &Moment) {
        if let State::HeldWithMs(left) = self.state {
            self.state = State::Until(Deadline::after(now, left));
        }
    }

    /// Converts a countdown of an earlier boot to the clock of this one.
    pub(crate) fn carry_over(&mut self, now: &Moment) {
        if let State::Until(deadline) = &mut self.state
            && !deadline.is_of(now)
        {
            *deadline = Deadline::after(now, deadline.left_ms(now));
        }
    }

    /// Records its end on the wall clock, which may have been set since: after a reboot,
    /// only the wall clock is left.
    pub(crate) fn note_wall(&mut self, now: &Moment) {
        if let State::Until(deadline) = &mut self.state
            && deadline.is_of(now)
        {
            deadline.left_ms = deadline.left_ms(now);
            deadline.wall_ms = now.wall_ms.saturating_add(deadline.left_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot: &str, up_ms: u64, wall_ms: u64) -> Moment {
        Moment { boot: boot.into(), up_ms, wall_ms }
    }

    #[test]
    fn the_time_left_on_every_clock() {
        let begun = Countdown::begin(&at("a", 1_000, 500_000), 10_000);
        for (why, now, left) in [
            ("at once", at("a", 1_000, 500_000), 10_000),
            ("later", at("a", 4_000, 503_000), 7_001),
            ("the wall clock jumped ahead", at("a", 4_000, 999_999_000), 7_001),
            ("the wall clock was set back", at("a", 4_000, 0), 7_001),
            ("suspended for long", at("a", 90_000_000, 503_000), 0),
            ("a boot later, by the wall clock", at("b", 5, 506_000), 4_000),
            ("a boot later, overdue", at("b", 5, 600_000), 0),
            ("a boot later, without a battery", at("b", 5, 0), 10_000),
        ] {
            assert_eq!(begun.left_ms(&now), left, "{why}");
        }
        assert!(!begun.is_over(&at("a", 11_000, 999_999_000)), "never early");
        assert!(begun.is_over(&at("a", 11_001, 0)), "at most a millisecond late");
    }

    #[test]
    fn a_held_countdown_keeps_the_time_left_on_any_clock() {
        let mut time = Countdown::begin(&at("a", 0, 0), 10_000);
        time.hold(&at("a", 4_001, 4_001));
        for later in [at("a", 500_000, 500_000), at("b", 1, 900_000)] {
            assert_eq!((time.left_ms(&later), time.due()), (6_000, None));
        }
        time.release(&at("b", 100, 900_000));
        assert_eq!(time.due(), Some(6_101));
        time.release(&at("b", 200, 900_000));
        assert_eq!(time.due(), Some(6_101), "a running countdown is unchanged");
    }

    #[test]
    fn it_is_carried_over_a_boot_once() {
        let mut time = Countdown::begin(&at("a", 1_000, 500_000), 10_000);
        time.carry_over(&at("a", 3_000, 700_000));
        assert_eq!(time.due(), Some(11_001), "this is still the same boot");
        time.carry_over(&at("b", 50, 506_000));
        assert_eq!(time.due(), Some(4_051));
        time.carry_over(&at("b", 60, 999_000));
        assert_eq!(time.due(), Some(4_051));
    }

    #[test]
    fn setting_the_wall_clock_does_not_make_it_early_after_a_boot() {
        let mut time = Countdown::begin(&at("a", 0, 0), 10_000);
        // An hour ahead, noticed with the next write.
        time.note_wall(&at("a", 2_001, 3_602_000));
        assert_eq!(time.left_ms(&at("b", 5, 3_604_000)), 6_000);
    }
}
