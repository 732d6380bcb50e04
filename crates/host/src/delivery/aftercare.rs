//! What is done for texts that stalled: it may yet be seen that one was taken, and a person is called
//! where one stands in a prompt. And for texts that were accepted during a turn: until the agent rests, they
//! may be in its CLI's own queue.

use std::sync::Arc;

use super::deliverer::Target;
use super::evidence::{is_left_of, is_said, same_words, told};
use super::gate;
use super::record::Delivery;
use crate::activity::{Glimpse, State};
use crate::host::Host;
use crate::process::{Attention, ProcessId};
use patterm_store::clock::now_ms;

/// Lines of a conversation in which a text is looked for: several screens.
const LINES: usize = 200;

/// The same before a text is put in, so that a wider terminal later shows no older ones.
const LINES_BEFORE: usize = 4 * LINES;

impl Host {
    /// Looks after the texts that stalled for a process or may be unread; `false` if there are none, or it
    /// ended.
    pub(super) fn look_after(self: &Arc<Self>, id: &ProcessId) -> bool {
        let has_unread = self.deliveries.has_unread(id);
        let watched = self.deliveries.watched(id);
        let is_none = watched.is_empty() && !has_unread;
        if is_none || self.processes.get(id).is_none_or(|p| !p.status.is_alive()) {
            return false;
        }
        let Some(target) = self.target(id) else { return true };
        let standing = self.activities.get(id);
        let rests = standing.settled && standing.verdict.state == State::Idle;
        if watched.is_empty() && !rests {
            return true;
        }
        let glimpse = target.glimpse();
        if has_unread && rests {
            self.deliveries.settle_unread(id, glimpse.composer.as_deref());
        }
        for stalled in &watched {
            if let Some(evidence) = target.was_taken(stalled, &glimpse) {
                self.deliveries.correct(stalled.id, &evidence);
                self.call_off(stalled);
            }
        }
        if let Some((stalled, stands)) = target.left_standing(&glimpse) {
            self.call_to(&stalled, &stands);
        }
        true
    }

    /// A hook of a CLI told that a turn was taken: it may be one that was called stalled.
    pub(crate) fn hear_turn(&self, id: &ProcessId, turn: &str) {
        let is_put_in = |begun: &Delivery| begun.to == *id && told(turn, &begun.text).is_some();
        if self.deliveries.begun().iter().any(is_put_in) {
            return;
        }
        let mut stalled = self.deliveries.watched(id).into_iter();
        let found = stalled.find_map(|stalled| {
            let evidence = told(turn, &stalled.text)?;
            Some((stalled, evidence))
        });
        if let Some((stalled, evidence)) = found {
            self.deliveries.correct(stalled.id, &evidence);
            self.call_off(&stalled);
        }
    }

    /// Calls a person to a text that stands in a prompt, once.
    fn call_to(&self, stalled: &Delivery, stands: &str) {
        let reason = gate::left_standing(stalled.id, stands);
        if self.processes.get(&stalled.to).is_none_or(|process| process.attention.is_some()) {
            return;
        }
        if !self.deliveries.call_once(stalled.id) {
            return;
        }
        self.processes.note(&stalled.to, |process| {
            let by = process.id.to_string();
            process.attention.get_or_insert(Attention { reason, by, at: now_ms() });
        });
    }

    /// The text that a person was called to is there no more.
    fn call_off(&self, taken: &Delivery) {
        let is_its =
            |attention: &mut Attention| attention.reason.starts_with(&gate::left_message(taken.id));
        self.processes.note(&taken.to, |process| drop(process.attention.take_if(is_its)));
    }
}

impl Target {
    /// What stands in the prompt of a text that stalled.
    pub(super) fn left_standing(&self, glimpse: &Glimpse) -> Option<(Delivery, String)> {
        let stands = glimpse.composer.as_deref().filter(|stands| !stands.is_empty())?;
        let watched = self.host.deliveries.watched(&self.live.id);
        let is_it = |stalled: &Delivery| {
            stalled.left.as_deref() == Some(stands)
                || same_words(&stalled.text, stands)
                || is_left_of(&stalled.text, stands)
        };
        let found = watched.into_iter().rev().find(is_it)?;
        Some((found, stands.to_owned()))
    }

    /// How it is seen that a text that stalled was taken after all.
    pub(super) fn was_taken(&self, stalled: &Delivery, glimpse: &Glimpse) -> Option<String> {
        if self.host.deliveries.is_repeated(stalled) {
            return None;
        }
        let turns = match stalled.begun_at {
            Some(begun) => self.facts.taken_since(begun),
            // An earlier server began it, before all that this one heard.
            None => self.facts.taken(),
        };
        // What stands in the prompt looks like what was said.
        let is_said = || glimpse.composer.as_deref() == Some("") && self.says(&stalled.text, LINES);
        seen_late(stalled, &turns, is_said)
    }

    /// Whether the conversation has a text already, before it is put in.
    pub(super) fn says_already(&self, text: &str) -> bool {
        self.says(text, LINES_BEFORE)
    }

    /// Whether its screen shows that a text was taken which was put in under these circumstances.
    pub(super) fn says_now(&self, begun: &Delivery) -> Option<String> {
        seen_late(begun, &[], || self.says(&begun.text, LINES))
    }

    /// Whether the last lines of its conversation have a text among what was said to it.
    fn says(&self, text: &str, lines: usize) -> bool {
        let composer = self.preset.as_ref().and_then(|preset| preset.composer.as_ref());
        composer.is_some_and(|composer| {
            let lines = self.live.last_lines(lines);
            is_said(lines.iter().map(String::as_str), composer, text)
        })
    }
}

/// What shows that a text was taken: a turn that a hook told of since it was begun, or the
/// conversation, if that did not have the same text before.
fn seen_late(
    stalled: &Delivery,
    turns_since: &[String],
    is_said: impl FnOnce() -> bool,
) -> Option<String> {
    let told = turns_since.iter().find_map(|turn| told(turn, &stalled.text));
    let shown = || {
        let is_new = stalled.said_before == Some(false) && is_said();
        is_new.then(|| "its screen shows the text among what was said to it".to_owned())
    };
    told.or_else(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{NewDelivery, Source};
    use patterm_store::state::StateDir;

    /// What shows that `continue` was taken, where its conversation shows that word now.
    #[track_caller]
    fn check(said_before: Option<bool>, turns_since: &[&str], expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let deliveries = crate::delivery::Deliveries::load(&state).unwrap();
        let new = NewDelivery {
            to: ProcessId::new(1),
            source: Source::Timer { timer_id: "t1".into() },
            key: None,
            text: "continue".into(),
        };
        let id = deliveries.hand_in(new).unwrap();
        let stalled = Delivery { said_before, ..deliveries.get(id).unwrap() };
        let turns: Vec<_> = turns_since.iter().map(|&turn| turn.to_owned()).collect();
        let evidence = seen_late(&stalled, &turns, || true);
        assert_eq!(evidence.is_some(), expected.is_some(), "{evidence:?}");
        assert!(evidence.unwrap_or_default().contains(expected.unwrap_or_default()));
    }

    #[test]
    fn what_was_said_before_a_text_was_begun_does_not_show_that_it_was_taken() {
        check(Some(false), &[], Some("its screen shows"));
        check(Some(true), &[], None);
        check(None, &[], None);
        check(Some(true), &["something else"], None);
        check(Some(true), &["continue"], Some("a hook of its CLI reported the same text"));
    }
}
