//! Events about timers: after each write, the book is compared with what was recorded.

use std::collections::BTreeMap;

use patterm_events::{About, EventLog};
use patterm_wire::events::{Actor, Fact};

use crate::book::Book;
use crate::record::{End, Mode, Timer, TimerId, Wake};

/// What has been recorded about the timers that did not end.
#[derive(Debug, Default)]
pub(crate) struct TimerRecorder {
    events: EventLog,
    open: BTreeMap<String, RecordedTimer>,
}

#[derive(Debug, Default)]
struct RecordedTimer {
    paused: bool,
    owner: Option<String>,
}

impl TimerRecorder {
    /// Continues after the events of earlier servers.
    pub(crate) fn new(events: EventLog) -> Self {
        let timers = events.known_state().open_timers.into_iter();
        let open = timers.map(|(id, paused)| (id, RecordedTimer { paused, owner: None })).collect();
        Self { events, open }
    }

    /// Records what has changed. `recovered` changes are those that an earlier server did not
    /// record.
    pub(crate) fn compare(&mut self, book: &Book, recovered: bool) {
        let is_gone = |id: &&String| !book.all().iter().any(|timer| timer.id.to_string() == **id);
        let gone: Vec<String> = self.open.keys().filter(is_gone).cloned().collect();
        for id in gone {
            let owner = self.open.remove(&id).and_then(|timer| timer.owner);
            let about = About { process_id: owner, ..About::default() };
            self.end(id, about, book, recovered);
        }
        for timer in book.all() {
            self.compare_timer(timer, recovered);
        }
    }

    fn compare_timer(&mut self, timer: &Timer, recovered: bool) {
        let timer_id = timer.id.to_string();
        let owner = Some(timer.owner.to_string());
        let now = RecordedTimer { paused: timer.paused, owner };
        let before = self.open.insert(timer_id.clone(), now);
        let was_paused = before.as_ref().is_some_and(|before| before.paused);
        let about = About::process(&timer.owner);
        if before.is_none() {
            let (timer_id, kind) = (timer_id.clone(), kind(timer).to_owned());
            let fact = Fact::TimerSet { timer_id, kind, label: timer.label.clone() };
            self.record(about.clone(), fact, recovered);
        }
        match (was_paused, timer.paused) {
            (false, true) => self.record(about, Fact::TimerPaused { timer_id }, recovered),
            (true, false) => self.record(about, Fact::TimerResumed { timer_id }, recovered),
            _ => {}
        }
    }

    fn end(&self, timer_id: String, about: About, book: &Book, recovered: bool) {
        let reason = match book.how_ended(&TimerId::named(&timer_id)) {
            Some(End::Fired) => {
                let actor = Actor::Timer { timer_id: timer_id.clone() };
                let fact = Fact::TimerFired { timer_id };
                return match recovered {
                    true => self.events.record_recovered(about, fact),
                    false => self.events.record_by(actor, about, fact),
                };
            }
            Some(End::Cancelled) => Some("cancelled".to_owned()),
            Some(End::OwnerClosed) => Some("owner_closed".to_owned()),
            None => None,
        };
        self.record(about, Fact::TimerCancelled { timer_id, reason }, recovered);
    }

    fn record(&self, about: About, fact: Fact, recovered: bool) {
        match recovered {
            true => self.events.record_recovered(about, fact),
            false => self.events.record(about, fact),
        }
    }
}

fn kind(timer: &Timer) -> &'static str {
    match &timer.wake {
        Wake::Delay(_) => "delay",
        Wake::Idle { exits: true, .. } => "exit",
        Wake::Idle { mode: Mode::Any, .. } => "idle_any",
        Wake::Idle { mode: Mode::All, .. } => "idle_all",
    }
}
