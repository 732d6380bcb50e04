//! The events that wait for a hook. There are never many: what a person should know about is soon old.

use std::collections::VecDeque;
use std::time::Duration;

use patterm_wire::events::{EventQuery, EventRecord, parse_time};
use tokio::time::Instant;

use crate::condition;

/// How many events wait at most. If there are more, the oldest are dropped.
pub(crate) const MOST_WAITING: usize = 100;

/// How old an event may be when its hook gets to it. A server that was down for longer notifies nobody of the past.
pub(crate) const OLDEST: Duration = Duration::from_secs(3_600);

/// An event that waits.
#[derive(Debug)]
struct Waiting {
    event: EventRecord,
    /// When it is handled.
    due: Instant,
    /// When it is too old.
    expires: Instant,
}

/// The events that wait for one hook.
#[derive(Debug)]
pub(crate) struct Queue {
    on: EventQuery,
    after: Duration,
    waiting: VecDeque<Waiting>,
    /// Events that were dropped since this was last asked for.
    dropped: u64,
}

impl Queue {
    pub(crate) fn new(on: &[String], after: Duration) -> Self {
        let on = EventQuery { types: on.to_vec(), ..EventQuery::default() };
        Self { on, after, waiting: VecDeque::new(), dropped: 0 }
    }

    /// The types of events to read: those that the hook is for, and those that end them while they wait.
    pub(crate) fn types(&self) -> Vec<String> {
        let mut types = self.on.types.clone();
        if !self.after.is_zero() {
            for kind in patterm_wire::events::Fact::TYPES {
                if self.on.matches(kind, None) {
                    types.extend(condition::enders(kind));
                }
            }
        }
        types.sort();
        types.dedup();
        types
    }

    /// Takes an event that was read.
    pub(crate) fn take(&mut self, event: EventRecord, wall_ms: u64, now: Instant) {
        if !self.after.is_zero() {
            self.waiting.retain(|waiting| !condition::is_ended_by(&waiting.event, &event));
        }
        if !self.on.matches(&event.kind, None) {
            return;
        }
        // An event of the future was recorded before the clock was set back.
        let at = parse_time(&event.time).unwrap_or(wall_ms).min(wall_ms);
        let age = Duration::from_millis(wall_ms - at);
        if age >= OLDEST {
            self.dropped += 1;
            return;
        }
        let due = now + self.after.saturating_sub(age);
        self.waiting.push_back(Waiting { event, due, expires: now + (OLDEST - age) });
        if self.waiting.len() > MOST_WAITING {
            self.waiting.pop_front();
            self.dropped += 1;
        }
    }

    /// When the next event is to be handled.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// The number of the first event that waits.
    pub(crate) fn first(&self) -> Option<u64> {
        self.waiting.front().map(|waiting| waiting.event.seq)
    }

    /// Takes the next event out, if it is to be handled now. Those that are too old are dropped.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<EventRecord> {
        while let Some(waiting) = self.waiting.front() {
            if waiting.due > now {
                return None;
            }
            let is_too_old = waiting.expires <= now;
            let event = self.waiting.pop_front().map(|waiting| waiting.event);
            if !is_too_old {
                return event;
            }
            self.dropped += 1;
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many events were dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::events::format_time;

    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn event(seq: u64, kind: &str, age: Duration) -> EventRecord {
        EventRecord {
            seq,
            kind: kind.into(),
            process_id: Some("p1".into()),
            time: format_time(NOW_MS - u64::try_from(age.as_millis()).unwrap()),
            ..EventRecord::default()
        }
    }

    fn queue(after: u64) -> Queue {
        Queue::new(&["agent.blocked".into()], Duration::from_secs(after))
    }

    #[test]
    fn an_event_waits_as_long_as_it_must_stay_true() {
        let (mut queue, now) = (queue(5), Instant::now());
        queue.take(event(1, "agent.blocked", Duration::from_secs(2)), NOW_MS, now);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(3)));
        assert_eq!(queue.pop(now + Duration::from_secs(2)), None);
        queue.take(event(2, "agent.working", Duration::ZERO), NOW_MS, now);
        assert_eq!((queue.len(), queue.take_dropped()), (0, 0), "it is not true any more");
        queue.take(event(3, "agent.blocked", Duration::ZERO), NOW_MS, now);
        let popped = queue.pop(now + Duration::from_secs(5)).map(|event| event.seq);
        assert_eq!(popped, Some(3));
        assert!(queue.types().iter().any(|kind| kind == "process.exited"));
    }

    #[test]
    fn without_a_wait_everything_is_handled_and_nothing_else_is_read() {
        let (mut queue, now) = (queue(0), Instant::now());
        assert_eq!(queue.types(), ["agent.blocked"]);
        for seq in 1..=2 {
            queue.take(event(seq, "agent.blocked", Duration::ZERO), NOW_MS, now);
        }
        assert_eq!((queue.first(), queue.len()), (Some(1), 2));
    }

    #[test]
    fn old_events_and_those_that_are_too_many_are_dropped_and_counted() {
        let (mut queue, now) = (queue(0), Instant::now());
        queue.take(event(1, "agent.blocked", OLDEST), NOW_MS, now);
        assert_eq!((queue.len(), queue.take_dropped()), (0, 1));
        let almost = OLDEST - Duration::from_secs(1);
        queue.take(event(2, "agent.blocked", almost), NOW_MS, now);
        for seq in 3..=103 {
            queue.take(event(seq, "agent.blocked", Duration::ZERO), NOW_MS, now);
        }
        assert_eq!((queue.len(), queue.take_dropped(), queue.first()), (MOST_WAITING, 2, Some(4)));
        assert_eq!(queue.pop(now + OLDEST), None, "all have become too old");
        assert_eq!(queue.take_dropped(), 100);
    }
}
