//! Verdicts over time: a turn that was just handed in counts as work, and rest is confirmed before
//! anybody is told.

use std::time::Duration;

use crate::activity_state::{State, Verdict};

/// How long idle must hold without contrary evidence before others are told.
pub(crate) const CONFIRM: Duration = Duration::from_secs(1);

/// A time since an arbitrary beginning.
pub(crate) type Moment = Duration;

/// Something that was handed in and of which nothing is seen yet.
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
pub(crate) struct Told {
    pub verdict: Verdict,
    pub settled: bool,
    pub again: Option<Duration>,
}

impl Tracker {
    /// Something was handed in: until it shows, or the time is over, the process is not idle.
    pub(crate) fn submitted(&mut self, pending: Pending) {
        self.pending = Some(pending);
        self.idle_since = None;
    }

    /// What was handed in is known to be over, though nothing showed of it.
    pub(crate) fn is_over(&mut self) {
        self.pending = None;
    }

    /// Takes the newest verdict. `over` says that it ended: nothing has to be confirmed then.
    pub(crate) fn take(&mut self, now: Moment, verdict: Verdict, over: bool) -> Told {
        if matches!(verdict.state, State::Working | State::Blocked | State::Limited) || over {
            self.pending = None;
        }
        if verdict.state != State::Idle {
            self.idle_since = None;
        }
        // Rest that is seen while something pends counts, but is not told before its time is over.
        let idle_since =
            (verdict.state == State::Idle).then(|| *self.idle_since.get_or_insert(now));
        let pending = self.pending.take_if(|pending| pending.until > now);
        let verdict = match &pending {
            Some(pending) => Verdict::new(State::Working, pending.what),
            None => verdict,
        };
        let hold = pending.as_ref().map(|pending| pending.until - now);
        self.pending = pending;
        let Some(idle_since) = idle_since.filter(|_| verdict.state == State::Idle) else {
            return Told { verdict, settled: false, again: hold };
        };
        let rested = now - idle_since;
        let settled = over || rested >= CONFIRM;
        Told { verdict, settled, again: (!settled).then(|| CONFIRM - rested) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn verdict(state: State) -> Verdict {
        Verdict::new(state, "seen")
    }

    #[test]
    fn rest_is_confirmed_before_it_is_told_and_any_work_between_begins_anew() {
        let mut tracker = Tracker::default();
        let steps = [
            (0, State::Idle, false),
            (900, State::Idle, false),
            (950, State::Working, false),
            (1_000, State::Idle, false),
            (1_999, State::Idle, false),
            (2_000, State::Idle, true),
            (2_100, State::Unknown, false),
            (2_200, State::Idle, false),
        ];
        for (at, state, settled) in steps {
            let told = tracker.take(MS(at), verdict(state), false);
            assert_eq!(told.settled, settled, "at {at}");
            assert_eq!(told.again.is_some(), state == State::Idle && !settled, "at {at}");
        }
    }

    #[test]
    fn what_was_handed_in_counts_as_work_until_it_shows_or_its_time_is_over() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        let told = tracker.take(MS(100), verdict(State::Idle), false);
        assert_eq!((told.verdict.state, told.again), (State::Working, Some(MS(2_900))));
        tracker.take(MS(200), verdict(State::Working), false);
        let told = tracker.take(MS(300), verdict(State::Idle), false);
        assert_eq!(told.verdict.state, State::Idle, "the work was seen, so the rest counts");
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        assert_eq!(tracker.take(MS(3_000), verdict(State::Idle), false).verdict.state, State::Idle);
    }

    #[test]
    fn a_turn_too_quick_to_be_seen_is_over_when_its_time_is() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "a turn was just handed in", until: MS(3_000) });
        assert_eq!(
            tracker.take(MS(100), verdict(State::Idle), false).verdict.state,
            State::Working
        );
        let told = tracker.take(MS(3_000), verdict(State::Idle), false);
        assert!(told.settled && told.verdict.state == State::Idle, "it rested all the while");
    }

    #[test]
    fn what_ended_is_idle_at_once() {
        let mut tracker = Tracker::default();
        tracker.submitted(Pending { what: "first instructions", until: MS(60_000) });
        let told = tracker.take(MS(1), verdict(State::Idle), true);
        assert!(told.settled && told.verdict.state == State::Idle && told.again.is_none());
    }
}
