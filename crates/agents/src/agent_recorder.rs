//! Events about the states of an agent in one run.

use std::sync::Arc;

use patterm_events::{About, EventLog};
use patterm_panes::data_plane::ProcessRun;
use patterm_wire::events::{Actor, Fact};
use tokio::time::Instant;

use crate::activity::FAILED;
use crate::activity_state::{Activity, ActivityState};

/// Records the states of an agent as they change.
#[derive(Debug)]
pub(crate) struct AgentRecorder {
    events: EventLog,
    run: Arc<ProcessRun>,
    /// The last event about its state.
    last: Option<String>,
    /// The version of the dialog that was recorded last.
    dialog: Option<String>,
    /// Since when it is in a turn.
    turn_since: Option<Instant>,
}

impl AgentRecorder {
    /// Continues after what earlier servers recorded about this run.
    pub(crate) fn new(events: EventLog, run: Arc<ProcessRun>) -> Self {
        let told = events.told().processes.remove(run.id.as_str());
        let told = told.filter(|process| process.run == run.number.get());
        let last = told.and_then(|process| process.agent);
        Self { events, run, last, dialog: None, turn_since: None }
    }

    /// Records the state, if it is another one.
    pub(crate) fn note(&mut self, activity: &Activity, now: Instant) {
        let Some(fact) = fact(activity) else { return };
        let name = fact.name();
        let dialog = activity.dialog.as_ref().map(|dialog| dialog.version.clone());
        // The dialog of an agent that an earlier server saw blocked is taken for the same.
        let is_other_dialog = self.dialog.is_some() && dialog.is_some() && dialog != self.dialog;
        let is_same = self.last.as_deref() == Some(name) && !is_other_dialog;
        self.dialog = dialog.or(self.dialog.take()).filter(|_| name == "agent.blocked");
        if is_same {
            return;
        }
        let reason = activity.reason.clone();
        if self.last.is_none() && activity.state == ActivityState::Idle {
            self.record(Fact::AgentReady { reason: reason.clone() });
        }
        if self.last.as_deref() == Some("agent.limited") {
            self.record(Fact::AgentResumed { reason });
        }
        self.last = Some(name.to_owned());
        match activity.state {
            ActivityState::Working => {
                self.turn_since.get_or_insert(now);
            }
            ActivityState::Idle => self.end_turn(now),
            ActivityState::Blocked | ActivityState::Limited | ActivityState::Unknown => {}
        }
        self.record(fact);
    }

    /// The run is over.
    pub(crate) fn end(&mut self, now: Instant) {
        self.end_turn(now);
    }

    fn end_turn(&mut self, now: Instant) {
        let Some(since) = self.turn_since.take() else { return };
        let ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        self.record(Fact::AgentTurnEnded { ms, tokens: None });
    }

    fn record(&self, fact: Fact) {
        let offset = self.run.watch().borrow().parsed.get();
        let about = About::process(&self.run.id).run(self.run.number.get()).at(offset);
        self.events.record_by(Actor::System, about, fact);
    }
}

/// The event about a state; `None` while there is no evidence for one.
fn fact(activity: &Activity) -> Option<Fact> {
    let reason = activity.reason.clone();
    Some(match activity.state {
        ActivityState::Working => Fact::AgentWorking { reason },
        ActivityState::Idle if reason.starts_with(FAILED) => Fact::AgentFailed { reason },
        ActivityState::Idle => Fact::AgentIdle { reason },
        ActivityState::Blocked => {
            let dialog = activity.dialog.as_ref();
            Fact::AgentBlocked {
                reason,
                question: dialog.map(|dialog| dialog.question.clone()),
                options: dialog.map(|dialog| dialog.options.clone()).unwrap_or_default(),
            }
        }
        ActivityState::Limited => {
            Fact::AgentLimited { reason, until: activity.limited_until.clone() }
        }
        ActivityState::Unknown => return None,
    })
}
