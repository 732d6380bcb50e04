//! Events about the states of an agent in one run.

use std::sync::Arc;
use std::time::Duration;

use patterm_events::{About, EventLog};
use patterm_panes::data_plane::ProcessRun;
use patterm_wire::events::{Actor, AnswerEvidence, Fact};
use tokio::time::Instant;

use crate::activity::FAILED;
use crate::activity_state::{Activity, ActivityState};

/// How long after input a dialog may close to count as answered by it: a CLI closes it at once, unless it is busy.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How long a dialog must look the same before it is recorded: CLIs draw it in steps, and a hook reports it before.
const SAME_TIME: Duration = Duration::from_millis(300);

/// The longest time until it is recorded, readable or not.
const DRAWING_TIME: Duration = Duration::from_secs(1);

/// A dialog that is being drawn.
#[derive(Debug)]
struct Drawing {
    fact: Fact,
    /// Its version and question, if it can be read.
    dialog: Option<(String, String)>,
    begun: Instant,
    changed: Instant,
}

/// Records the states of an agent as they change.
#[derive(Debug)]
pub(crate) struct AgentRecorder {
    events: EventLog,
    run: Arc<ProcessRun>,
    /// The last event about its state.
    last: Option<String>,
    /// The dialog that is recorded once it is drawn.
    drawing: Option<Drawing>,
    /// The version of the dialog that was recorded last.
    dialog: Option<String>,
    /// What it asks.
    question: Option<String>,
    /// What the open dialog asks, and since when this server has seen it.
    asked: Option<(String, Instant)>,
    /// Since when it is in a turn.
    turn_since: Option<Instant>,
}

impl AgentRecorder {
    /// Continues after what earlier servers recorded about this run.
    pub(crate) fn new(events: EventLog, run: Arc<ProcessRun>) -> Self {
        let before = events.known_state().processes.remove(run.id.as_str());
        let before = before.filter(|process| process.run == run.number.get());
        let last = before.and_then(|process| process.agent);
        Self {
            events,
            run,
            last,
            drawing: None,
            dialog: None,
            question: None,
            asked: None,
            turn_since: None,
        }
    }

    /// Records the state, if it is another one. Returns when to look again at the latest.
    pub(crate) fn note(&mut self, activity: &Activity, now: Instant) -> Option<Duration> {
        if activity.state == ActivityState::Blocked {
            return self.note_blocked(activity, now);
        }
        // A dialog that closes before it can be read was approved automatically, or its hook's report was late. One that
        // was just answered may be drawn once more.
        match &self.drawing {
            Some(Drawing { dialog: Some((_, question)), .. })
                if self.question.as_ref() != Some(question) =>
            {
                self.record_drawing();
            }
            _ => self.drawing = None,
        }
        let fact = fact(activity)?;
        self.dialog = None;
        if self.last.as_deref() == Some(fact.name()) {
            return None;
        }
        self.note_answer(now);
        let reason = activity.reason.clone();
        if self.last.is_none() && activity.state == ActivityState::Idle {
            self.record(Fact::AgentReady { reason });
        }
        self.switch_to(&fact);
        match activity.state {
            ActivityState::Working => {
                self.turn_since.get_or_insert(now);
            }
            ActivityState::Idle => self.end_turn(now),
            ActivityState::Blocked | ActivityState::Limited | ActivityState::Unknown => {}
        }
        self.record(fact);
        None
    }

    /// Its dialog is recorded once it looks the same for a moment.
    fn note_blocked(&mut self, activity: &Activity, now: Instant) -> Option<Duration> {
        let fact = fact(activity)?;
        let dialog = activity.dialog.as_ref();
        let dialog = dialog.map(|dialog| (dialog.version.clone(), dialog.question.clone()));
        let is_blocked = self.last.as_deref() == Some(fact.name());
        if is_blocked && self.drawing.is_none() {
            let version = dialog.as_ref().map(|(version, _)| version);
            // The dialog of an agent that an earlier server saw blocked is taken for the same.
            if version.is_none() || self.dialog.is_none() || version == self.dialog.as_ref() {
                if let Some((version, question)) = dialog {
                    self.dialog = Some(version);
                    self.asked.get_or_insert((question, now));
                }
                return None;
            }
        }
        let drawing = match self.drawing.take() {
            Some(drawing) if drawing.dialog == dialog => drawing,
            Some(drawing) => Drawing { fact, dialog, changed: now, ..drawing },
            None => {
                self.note_answer(now);
                Drawing { fact, dialog, begun: now, changed: now }
            }
        };
        let left = DRAWING_TIME.saturating_sub(now - drawing.begun);
        let left = match drawing.dialog {
            Some(_) => left.min(SAME_TIME.saturating_sub(now - drawing.changed)),
            None => left,
        };
        self.drawing = Some(drawing);
        if left.is_zero() {
            self.record_drawing();
            return None;
        }
        Some(left)
    }

    fn record_drawing(&mut self) {
        let Some(Drawing { fact, dialog, begun, .. }) = self.drawing.take() else { return };
        self.switch_to(&fact);
        self.question = dialog.as_ref().map(|(_, question)| question.clone());
        (self.dialog, self.asked) = match dialog {
            Some((version, question)) => (Some(version), Some((question, begun))),
            None => (None, None),
        };
        self.record(fact);
    }

    fn switch_to(&mut self, fact: &Fact) {
        if self.last.as_deref() == Some("agent.limited")
            && let Some(reason) = reason_of(fact)
        {
            self.record(Fact::AgentResumed { reason });
        }
        self.last = Some(fact.name().to_owned());
    }

    /// The dialog has closed. If somebody has just typed, that may have answered it; if patterm typed an answer, that is
    /// recorded already.
    fn note_answer(&mut self, now: Instant) {
        let Some((question, since)) = self.asked.take() else { return };
        let since = now.checked_sub(ANSWER_TIME).map_or(since, |recent| recent.max(since));
        let Some(typist) = self.run.typist_since(since) else { return };
        let evidence = AnswerEvidence::Typed;
        let fact = Fact::DialogAnswered { question, option: None, key: None, evidence };
        self.record_by((*typist).clone(), fact);
    }

    /// The run is over.
    pub(crate) fn end(&mut self, now: Instant) {
        self.record_drawing();
        self.end_turn(now);
    }

    fn end_turn(&mut self, now: Instant) {
        let Some(since) = self.turn_since.take() else { return };
        let ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        self.record(Fact::AgentTurnEnded { ms, tokens: None });
    }

    fn record(&self, fact: Fact) {
        self.record_by(Actor::System, fact);
    }

    fn record_by(&self, actor: Actor, fact: Fact) {
        let offset = self.run.watch().borrow().parsed.get();
        let about = About::process(&self.run.id).run(self.run.number.get()).at(offset);
        self.events.record_by(actor, about, fact);
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

fn reason_of(fact: &Fact) -> Option<String> {
    match fact {
        Fact::AgentWorking { reason }
        | Fact::AgentIdle { reason }
        | Fact::AgentFailed { reason }
        | Fact::AgentBlocked { reason, .. } => Some(reason.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_panes::Offset;
    use patterm_panes::process::{ProcessId, RunNumber};
    use patterm_screen::{Screen, Size};
    use patterm_store::clock::Clock;
    use patterm_wire::events::{EventQuery, EventRecord};
    use serde_json::json;

    use super::*;
    use crate::activity_state::Dialog;

    /// A run of an agent, its recorder and the log.
    struct Stage {
        _folder: tempfile::TempDir,
        run: Arc<ProcessRun>,
        events: EventLog,
        recorder: AgentRecorder,
    }

    impl Stage {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let log = Log::open(folder.path(), 1 << 20).unwrap();
            let screen = Screen::new(Size::new(24, 80));
            let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
            let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
            let (run, events) = (Arc::new(run), folder.path().join("events"));
            let events = EventLog::open(&events, 8 << 20, Clock::system()).unwrap();
            let recorder = AgentRecorder::new(events.clone(), run.clone());
            Self { _folder: folder, run, events, recorder }
        }

        fn state(&mut self, state: ActivityState, reason: &str) {
            self.recorder.note(&Activity::new(state, reason), Instant::now());
        }

        fn asks(&mut self, version: &str, question: &str) {
            let mut activity = Activity::new(ActivityState::Blocked, "a dialog");
            activity.dialog = Some(dialog(version, question));
            let now = Instant::now();
            assert_eq!(self.recorder.note(&activity, now), Some(SAME_TIME));
            assert_eq!(self.recorder.note(&activity, now + SAME_TIME), None);
        }

        fn events(&self) -> Vec<EventRecord> {
            let query = EventQuery { since: Some(1), ..EventQuery::default() };
            self.events.read(&query).unwrap().events
        }

        fn answers(&self) -> Vec<EventRecord> {
            self.events().into_iter().filter(|event| event.kind == "dialog.answered").collect()
        }
    }

    fn dialog(version: &str, question: &str) -> Dialog {
        Dialog {
            version: version.into(),
            question: question.into(),
            options: vec!["Yes".into()],
            ways: vec![None],
            cursor: None,
            rule: "asks".into(),
        }
    }

    #[test]
    fn each_state_is_recorded_once() {
        let mut stage = Stage::new();
        stage.state(ActivityState::Idle, "its prompt");
        stage.state(ActivityState::Working, "a spinner");
        stage.state(ActivityState::Working, "another spinner");
        stage.asks("1-a", "Push?");
        stage.state(ActivityState::Limited, "5-hour limit");
        stage.state(ActivityState::Working, "a spinner");
        stage.state(ActivityState::Idle, &format!("{FAILED}overloaded"));
        let kinds: Vec<_> = stage.events().into_iter().map(|event| event.kind).collect();
        let expected = [
            "agent.ready",
            "agent.idle",
            "agent.working",
            "agent.blocked",
            "agent.limited",
            "agent.resumed",
            "agent.working",
            "agent.turn_ended",
            "agent.failed",
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_dialog_is_recorded_once_when_it_is_drawn() {
        let mut stage = Stage::new();
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut activity = Activity::new(ActivityState::Blocked, "a hook reports a permission");
        assert_eq!(stage.recorder.note(&activity, now), Some(DRAWING_TIME));
        activity.dialog = Some(dialog("1-a", "Pu"));
        assert_eq!(stage.recorder.note(&activity, at(100)), Some(SAME_TIME));
        activity.dialog = Some(dialog("1-b", "Push?"));
        assert_eq!(stage.recorder.note(&activity, at(200)), Some(SAME_TIME));
        assert_eq!(stage.recorder.note(&activity, at(500)), None);
        assert_eq!(stage.recorder.note(&activity, at(900)), None);
        // It closes before it is drawn.
        activity.dialog = Some(dialog("2-a", "Force?"));
        assert_eq!(stage.recorder.note(&activity, at(1_000)), Some(SAME_TIME));
        stage.state(ActivityState::Working, "a spinner");
        // What was approved at once.
        activity.dialog = None;
        stage.recorder.note(&activity, at(2_000));
        stage.state(ActivityState::Working, "a spinner");
        let events = stage.events();
        let of = |event: &EventRecord| (event.kind.clone(), json!(event.data)["question"].clone());
        let found: Vec<_> = events.iter().map(of).collect();
        let blocked = |question: &str| ("agent.blocked".to_owned(), json!(question));
        let working = ("agent.working".to_owned(), json!(null));
        assert_eq!(found, [blocked("Push?"), blocked("Force?"), working]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dialog_that_closes_after_input_was_answered_by_who_typed() {
        let mut stage = Stage::new();
        let person = Arc::new(Actor::view());
        stage.run.note_typist(&person);
        tokio::time::advance(Duration::from_millis(1)).await;
        stage.asks("1-a", "Push?");
        stage.state(ActivityState::Working, "a spinner");
        assert_eq!(stage.answers(), [], "typed before it was asked");
        stage.asks("2-a", "Push?");
        stage.run.note_typist(&Arc::new(Actor::agent("p9")));
        stage.asks("3-b", "Force?");
        let [answer] = &stage.answers()[..] else { panic!("{:?}", stage.events()) };
        assert_eq!(answer.actor, Actor::agent("p9"));
        assert_eq!(json!(answer.data), json!({"question": "Push?", "evidence": "typed"}));
        let kinds: Vec<_> = stage.events().into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds[kinds.len() - 2..], ["dialog.answered", "agent.blocked"]);
        // patterm itself types an answer, which is recorded elsewhere.
        stage.run.note_typist(&person);
        stage.run.forget_typist();
        stage.state(ActivityState::Idle, "its prompt");
        // Input long ago has answered nothing.
        stage.asks("4-c", "Sure?");
        stage.run.note_typist(&person);
        tokio::time::advance(ANSWER_TIME * 2).await;
        stage.state(ActivityState::Idle, "its prompt");
        assert_eq!(stage.answers().len(), 1);
    }
}
