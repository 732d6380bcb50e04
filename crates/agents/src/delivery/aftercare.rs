//! Follow-up on texts that stalled: one may turn out to have been accepted, and attention is requested
//! for one that is left in a prompt. Also follow-up on texts that were accepted during a turn: until
//! the agent is idle, they may be in its CLI's own queue.

use std::sync::Arc;

use super::deliverer::{Deliverer, Target};
use super::evidence::{is_left_of, is_shown, match_report, same_words};
use super::gate;
use super::record::Delivery;
use crate::activity::{ActivityState, ScreenSnapshot};
use patterm_panes::process::{Attention, ProcessId};

/// How many lines of a conversation are searched for a text: several screens.
const LINES: usize = 200;

/// The same before a text is typed: more, because a terminal that becomes wider may show older ones.
const LINES_BEFORE: usize = 4 * LINES;

impl Deliverer {
    /// Follows up on texts for a process that stalled or may be unread; `false` if there are none, or
    /// the process has ended.
    pub(super) fn follow_up(self: &Arc<Self>, id: &ProcessId) -> bool {
        let has_unread = self.deliveries.has_unread(id);
        let watched = self.deliveries.watched(id);
        let is_none = watched.is_empty() && !has_unread;
        if is_none || self.panes.processes.get(id).is_none_or(|p| !p.status.is_alive()) {
            return false;
        }
        let Some(target) = self.target(id) else { return true };
        let status = self.activities.get(id);
        let rests = status.settled && status.activity.state == ActivityState::Idle;
        if watched.is_empty() && !rests {
            return true;
        }
        let snapshot = target.snapshot();
        if has_unread && rests {
            self.deliveries.settle_unread(id, snapshot.composer.as_deref());
        }
        for stalled in &watched {
            if let Some(evidence) = target.late_acceptance(stalled, &snapshot) {
                self.deliveries.correct(stalled.id, &evidence);
                self.withdraw_attention(stalled);
            }
        }
        if let Some((stalled, text)) = target.left_in_prompt(&snapshot) {
            self.request_attention(&stalled, &text);
        }
        true
    }

    /// Handles a turn that a hook of a CLI reported: its text may have been recorded as stalled.
    pub(crate) fn note_turn(&self, id: &ProcessId, turn: &str) {
        let is_submitted =
            |begun: &Delivery| begun.to == *id && match_report(turn, &begun.text).is_some();
        if self.deliveries.begun().iter().any(is_submitted) {
            return;
        }
        let mut stalled = self.deliveries.watched(id).into_iter();
        let found = stalled.find_map(|stalled| {
            let evidence = match_report(turn, &stalled.text)?;
            Some((stalled, evidence))
        });
        if let Some((stalled, evidence)) = found {
            self.deliveries.correct(stalled.id, &evidence);
            self.withdraw_attention(&stalled);
        }
    }

    /// Requests attention once for a text that is left in a prompt.
    fn request_attention(&self, stalled: &Delivery, text: &str) {
        let reason = gate::left_in_prompt(stalled.id, text);
        if self.panes.processes.get(&stalled.to).is_none_or(|process| process.attention.is_some()) {
            return;
        }
        if !self.deliveries.first_call(stalled.id) {
            return;
        }
        let at = self.panes.clock().wall_ms();
        self.panes.processes.note(&stalled.to, |process| {
            let by = process.id.to_string();
            process.attention.get_or_insert(Attention { reason, by, at });
        });
    }

    /// Withdraws the request for attention: the text is no longer in the prompt.
    fn withdraw_attention(&self, accepted: &Delivery) {
        let is_its = |attention: &mut Attention| {
            attention.reason.starts_with(&gate::left_message(accepted.id))
        };
        self.panes.processes.note(&accepted.to, |process| drop(process.attention.take_if(is_its)));
    }
}

impl Target {
    /// The stalled text that is left in the prompt, if any, and the prompt's content.
    pub(super) fn left_in_prompt(&self, snapshot: &ScreenSnapshot) -> Option<(Delivery, String)> {
        let text = snapshot.composer.as_deref().filter(|text| !text.is_empty())?;
        let watched = self.deliverer.deliveries.watched(&self.run.id);
        let is_it = |stalled: &Delivery| {
            stalled.left.as_deref() == Some(text)
                || same_words(&stalled.text, text)
                || is_left_of(&stalled.text, text)
        };
        let found = watched.into_iter().rev().find(is_it)?;
        Some((found, text.to_owned()))
    }

    /// The evidence that a stalled text was accepted after all, if there is any.
    pub(super) fn late_acceptance(
        &self,
        stalled: &Delivery,
        snapshot: &ScreenSnapshot,
    ) -> Option<String> {
        if self.deliverer.deliveries.is_repeated(stalled) {
            return None;
        }
        let turns = match stalled.begun_at {
            Some(begun) => self.signals.turns_since(begun),
            // An earlier server began it, before all reports that this one received.
            None => self.signals.turns(),
        };
        // Text in the prompt looks like a message in the conversation.
        let is_shown =
            || snapshot.composer.as_deref() == Some("") && self.shows_message(&stalled.text, LINES);
        late_evidence(stalled, &turns, is_shown)
    }

    /// Whether the conversation already contains a text, before it is typed.
    pub(super) fn already_shows_message(&self, text: &str) -> bool {
        self.shows_message(text, LINES_BEFORE)
    }

    /// The evidence on its screen that this text was accepted, if there is any.
    pub(super) fn shown_now(&self, begun: &Delivery) -> Option<String> {
        late_evidence(begun, &[], || self.shows_message(&begun.text, LINES))
    }

    /// Whether the last lines of its conversation contain a text as a message to it.
    fn shows_message(&self, text: &str, lines: usize) -> bool {
        let composer = self.preset.as_ref().and_then(|preset| preset.composer.as_ref());
        composer.is_some_and(|composer| {
            let lines = self.run.last_lines(lines);
            is_shown(lines.iter().map(String::as_str), composer, text)
        })
    }
}

/// The evidence that a text was accepted: a turn that a hook reported since it was begun, or the
/// conversation, if that did not contain the same text before.
fn late_evidence(
    stalled: &Delivery,
    turns_since: &[String],
    is_shown: impl FnOnce() -> bool,
) -> Option<String> {
    let reported = turns_since.iter().find_map(|turn| match_report(turn, &stalled.text));
    let shown = || {
        let is_new = stalled.shown_before == Some(false) && is_shown();
        is_new.then(|| "its screen shows the text as a message in the conversation".to_owned())
    };
    reported.or_else(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{NewDelivery, Source};
    use patterm_store::clock::Clock;
    use patterm_store::state::StateDir;

    /// The evidence that `continue` was accepted, if the conversation shows that word now.
    #[track_caller]
    fn check(shown_before: Option<bool>, turns_since: &[&str], expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let deliveries = crate::delivery::Deliveries::load(&state, Clock::system()).unwrap();
        let new = NewDelivery {
            to: ProcessId::new(1),
            source: Source::Timer { timer_id: "t1".into() },
            key: None,
            text: "continue".into(),
        };
        let id = deliveries.enqueue(new).unwrap();
        let stalled = Delivery { shown_before, ..deliveries.get(id).unwrap() };
        let turns: Vec<_> = turns_since.iter().map(|&turn| turn.to_owned()).collect();
        let evidence = late_evidence(&stalled, &turns, || true);
        assert_eq!(evidence.is_some(), expected.is_some(), "{evidence:?}");
        assert!(evidence.unwrap_or_default().contains(expected.unwrap_or_default()));
    }

    #[test]
    fn a_text_that_was_already_on_the_screen_is_not_evidence_of_acceptance() {
        check(Some(false), &[], Some("its screen shows"));
        check(Some(true), &[], None);
        check(None, &[], None);
        check(Some(true), &["something else"], None);
        check(Some(true), &["continue"], Some("a hook of its CLI reported the same text"));
    }
}
