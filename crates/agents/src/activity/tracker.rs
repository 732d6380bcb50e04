//! Activities over time: a turn that was just submitted counts as work, and rest is confirmed before
//! anybody is told.

use std::time::Duration;

use crate::activity_state::{Activity, ActivityState};

/// How long idle must hold without contrary evidence before others are told.
pub(crate) const CONFIRM: Duration = Duration::from_secs(1);

/// A time since an arbitrary beginning.
pub(crate) type Moment = Duration;

/// Something that was submitted and of which nothing is seen yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// What.
    pub what: &'static str,
    /// When it is no longer believed.
    pub until: Moment,
}

/// What was concluded up to now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker {
    idle_since: Option<Moment>,
    pending: Option<Pending>,
}

/// What others may be told, and when to look again at the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observation {
    pub activity: Activity,
    pub settled: bool,
    pub again: Option<Duration>,
}

impl Tracker {
    /// Something was submitted: until it shows, or the time is over, the process is not idle.
    pub(crate) fn submitted(&mut self, pending: Pending) {
        self.pending = Some(pending);
        self.idle_since = None;
    }

    /// What was submitted is known to be over, though nothing showed of it.
    pub(crate) fn is_over(&mut self) {
        self.pending = None;
    }

    /// Takes the newest activity. `over` says that it ended: nothing has to be confirmed then.
    pub(crate) fn take(&mut self, now: Moment, activity: Activity, over: bool) -> Observation {
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
        // Rest that is seen while something pends counts, but is not told before its time is over.
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
        let rested = now - idle_since;
        let settled = over || rested >= CONFIRM;
        Observation { activity, settled, again: (!settled).then(|| CONFIRM - rested) }
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
    fn rest_is_confirmed_before_it_is_told_and_any_work_between_begins_anew() {
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
            let told = tracker.take(MS(at), activity(state), false);
            assert_eq!(told.settled, settled, "at {at}");
            assert_eq!(told.again.is_some(), state == ActivityState::Idle && !settled, "at {at}");
        }
    }

    #[test]
    fn what_was_handed_in_counts_as_work_until_it_shows_or_its_time_is_over() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        let told = tracker.take(MS(100), activity(ActivityState::Idle), false);
        assert_eq!((told.activity.state, told.again), (ActivityState::Working, Some(MS(2_900))));
        tracker.take(MS(200), activity(ActivityState::Working), false);
        let told = tracker.take(MS(300), activity(ActivityState::Idle), false);
        assert_eq!(
            told.activity.state,
            ActivityState::Idle,
            "the work was seen, so the rest counts"
        );
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        assert_eq!(
            tracker.take(MS(3_000), activity(ActivityState::Idle), false).activity.state,
            ActivityState::Idle
        );
    }

    #[test]
    fn a_turn_too_quick_to_be_seen_is_over_when_its_time_is() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        assert_eq!(
            tracker.take(MS(100), activity(ActivityState::Idle), false).activity.state,
            ActivityState::Working
        );
        let told = tracker.take(MS(3_000), activity(ActivityState::Idle), false);
        assert!(
            told.settled && told.activity.state == ActivityState::Idle,
            "it rested all the while"
        );
    }

    #[test]
    fn what_ended_is_idle_at_once() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "first instructions", until: MS(60_000) });
        let told = tracker.take(MS(1), activity(ActivityState::Idle), true);
        assert!(told.settled && told.activity.state == ActivityState::Idle && told.again.is_none());
    }
}
