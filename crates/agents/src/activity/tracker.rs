//! Activities over time: a turn that was just submitted counts as work, and idleness is confirmed
//! before others are notified.

use std::time::Duration;

use crate::activity_state::{Activity, ActivityState};

/// How long idle must last without contrary evidence before others are notified.
pub(crate) const CONFIRM: Duration = Duration::from_secs(1);

/// A time since an arbitrary beginning.
pub(crate) type SinceBeginning = Duration;

/// A submitted turn whose effect is not visible yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The reason to show until then.
    pub what: &'static str,
    /// Until when it counts as work.
    pub until: SinceBeginning,
}

/// The conclusions so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker {
    idle_since: Option<SinceBeginning>,
    pending: Option<Pending>,
}

/// A conclusion for others, and when to check again at the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observation {
    pub activity: Activity,
    pub settled: bool,
    pub again: Option<Duration>,
}

impl Tracker {
    /// Records a submitted turn: until its effect is visible, or its time is over, the process is
    /// not idle.
    pub(crate) fn submitted(&mut self, pending: Pending) {
        self.pending = Some(pending);
        self.idle_since = None;
    }

    /// Whether the effect of a submitted turn is still awaited.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The submitted turn is known to be over, although its effect was never visible.
    pub(crate) fn is_over(&mut self) {
        self.pending = None;
    }

    /// Adds the newest activity. `over` says that the process ended, so that nothing has to be
    /// confirmed.
    pub(crate) fn take(
        &mut self,
        now: SinceBeginning,
        activity: Activity,
        over: bool,
    ) -> Observation {
        if matches!(
            activity.state,
            ActivityState::Working | ActivityState::Blocked | ActivityState::Limited
        ) || over
        {
            self.pending = None;
        }
        if activity.state != ActivityState::Idle {
            self.idle_since = None;
        }
        // Idleness that is observed while a turn is pending counts, but is not reported before its
        // time is over.
        let idle_since =
            (activity.state == ActivityState::Idle).then(|| *self.idle_since.get_or_insert(now));
        let pending = self.pending.take_if(|pending| pending.until > now);
        let activity = match &pending {
            Some(pending) => Activity::new(ActivityState::Working, pending.what),
            None => activity,
        };
        let hold = pending.as_ref().map(|pending| pending.until - now);
        self.pending = pending;
        let Some(idle_since) = idle_since.filter(|_| activity.state == ActivityState::Idle) else {
            return Observation { activity, settled: false, again: hold };
        };
        let idle_for = now - idle_since;
        let settled = over || idle_for >= CONFIRM;
        Observation { activity, settled, again: (!settled).then(|| CONFIRM - idle_for) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn activity(state: ActivityState) -> Activity {
        Activity::new(state, "seen")
    }

    #[test]
    fn idle_is_confirmed_before_it_is_reported_and_any_work_restarts_the_wait() {
        let mut tracker = Tracker::default();
        let steps = [
            (0, ActivityState::Idle, false),
            (900, ActivityState::Idle, false),
            (950, ActivityState::Working, false),
            (1_000, ActivityState::Idle, false),
            (1_999, ActivityState::Idle, false),
            (2_000, ActivityState::Idle, true),
            (2_100, ActivityState::Unknown, false),
            (2_200, ActivityState::Idle, false),
        ];
        for (at, state, settled) in steps {
            let observation = tracker.take(MS(at), activity(state), false);
            assert_eq!(observation.settled, settled, "at {at}");
            assert_eq!(
                observation.again.is_some(),
                state == ActivityState::Idle && !settled,
                "at {at}"
            );
        }
    }

    #[test]
    fn a_submitted_turn_counts_as_work_until_it_is_visible_or_its_time_is_over() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just submitted", until: MS(3_000) });
        let observation = tracker.take(MS(100), activity(ActivityState::Idle), false);
        assert_eq!(
            (observation.activity.state, observation.again),
            (ActivityState::Working, Some(MS(2_900)))
        );
        tracker.take(MS(200), activity(ActivityState::Working), false);
        let observation = tracker.take(MS(300), activity(ActivityState::Idle), false);
        assert_eq!(
            observation.activity.state,
            ActivityState::Idle,
            "the work was seen, so idle counts"
        );
        tracker.submitted(Pending { what: "a turn was just submitted", until: MS(3_000) });
        assert_eq!(
            tracker.take(MS(3_000), activity(ActivityState::Idle), false).activity.state,
            ActivityState::Idle
        );
    }

    #[test]
    fn a_turn_too_quick_to_be_seen_is_over_when_its_time_is_up() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just submitted", until: MS(3_000) });
        assert_eq!(
            tracker.take(MS(100), activity(ActivityState::Idle), false).activity.state,
            ActivityState::Working
        );
        let observation = tracker.take(MS(3_000), activity(ActivityState::Idle), false);
        assert!(
            observation.settled && observation.activity.state == ActivityState::Idle,
            "it was idle all the time"
        );
    }

    #[test]
    fn an_ended_process_is_idle_at_once() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "first instructions", until: MS(60_000) });
        let observation = tracker.take(MS(1), activity(ActivityState::Idle), true);
        assert!(
            observation.settled
                && observation.activity.state == ActivityState::Idle
                && observation.again.is_none()
        );
    }
}
