//! The times of events. They never go back, unless an event says that the clock was set.

use patterm_store::clock::Moment;
use patterm_wire::events::{Fact, format_time};

/// How far the wall clock may move against the time since boot before it counts as set: daemons correct it by less.
const STEP_MS: u64 = 2_000;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The time of the last event.
    last_ms: u64,
    /// The moment of the last event of this server.
    last: Option<Moment>,
}

impl Timeline {
    /// Continues after an event of an earlier server.
    pub(crate) fn after(last_ms: u64) -> Self {
        Self { last_ms, last: None }
    }

    /// The time of an event at this moment. If the clock was set since the last event, also returns what to record
    /// first.
    pub(crate) fn take(&mut self, now: Moment) -> (u64, Option<Fact>) {
        let expected = self.expected(&now);
        let step = now.wall_ms.abs_diff(expected);
        let was_set = expected > 0 && step >= STEP_MS;
        let ms = i64::try_from(step).unwrap_or(i64::MAX);
        let ms = if now.wall_ms < expected { -ms } else { ms };
        self.last_ms = if was_set { now.wall_ms } else { now.wall_ms.max(self.last_ms) };
        self.last = Some(now);
        let changed =
            was_set.then(|| Fact::SystemClockChanged { before: format_time(expected), ms });
        (self.last_ms, changed)
    }

    /// What the wall clock should show.
    pub(crate) fn expected(&self, now: &Moment) -> u64 {
        match &self.last {
            Some(last) if last.boot == now.boot => {
                last.wall_ms.saturating_add(now.up_ms.saturating_sub(last.up_ms))
            }
            // How much time has passed since another server or boot is unknown: only a clock that is behind was set.
            _ => now.wall_ms.max(self.last_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(up_ms: u64, wall_ms: u64) -> Moment {
        Moment { boot: "b".into(), up_ms, wall_ms }
    }

    #[test]
    fn a_clock_that_is_set_is_recorded_and_a_small_correction_is_not() {
        const DAY: u64 = 86_400_000;
        let mut timeline = Timeline::default();
        assert_eq!(timeline.take(moment(0, DAY)), (DAY, None));
        assert_eq!(timeline.take(moment(5, DAY - 1_000)), (DAY, None), "it does not go back");
        assert_eq!(timeline.take(moment(2_005, DAY + 1_000)), (DAY + 1_000, None));
        let (time, changed) = timeline.take(moment(2_105, 1_100));
        let expected =
            Fact::SystemClockChanged { before: format_time(DAY + 1_100), ms: -(DAY as i64) };
        assert_eq!((time, changed), (1_100, Some(expected)));
        assert_eq!(timeline.take(moment(2_106, 1_101)), (1_101, None));
        let (time, changed) = timeline.take(moment(2_107, DAY));
        assert!(
            time == DAY && matches!(changed, Some(Fact::SystemClockChanged { ms, .. }) if ms > 0)
        );
    }

    #[test]
    fn the_next_server_notices_only_a_clock_that_is_behind() {
        assert_eq!(Timeline::after(5_000_000).take(moment(0, 9_000_000)), (9_000_000, None));
        assert_eq!(Timeline::after(5_000_000).take(moment(0, 4_999_000)), (5_000_000, None));
        let (time, changed) = Timeline::after(5_000_000).take(moment(0, 1_000_000));
        assert!(time == 1_000_000 && changed.is_some());
    }
}
