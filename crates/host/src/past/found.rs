//! Events as places in time: which of them count, and what they say.

use patterm_wire::events::{Actor, EventRecord, matches_type, parse_time};
use patterm_wire::past::{EventGroup, PastPlace};
use serde_json::Value;

/// Messages. That one waits is no news.
const MESSAGES: [&str; 4] =
    ["message.accepted", "message.delivered", "message.stalled", "message.dropped"];

/// States of processes and agents.
const STATES: [&str; 9] = [
    "agent.*",
    "process.started",
    "process.exited",
    "process.stopped",
    "process.signalled",
    "process.restarted",
    "process.lost",
    "port.opened",
    "port.closed",
];

/// What needs a person.
const ATTENTION: [&str; 4] = ["attention.raised", "agent.blocked", "agent.failed", "agent.limited"];

/// What else happens to processes.
const OTHERS: [&str; 5] =
    ["attention.*", "dialog.answered", "timer.fired", "git.commit", "git.branch"];

/// The members of an event that say most about it; the first one that it has is shown.
const DETAILS: [&str; 10] = [
    "question", "reason", "evidence", "option", "subject", "error", "code", "signal", "port",
    "label",
];

/// Characters of such a text: a line on a wide terminal.
const TEXT_CHARS: usize = 160;

/// Whether an event counts, and is about one of these processes.
pub(super) fn is_in(group: EventGroup, event: &EventRecord, processes: &[String]) -> bool {
    let has = |types: &[&str]| types.iter().any(|wanted| matches_type(wanted, &event.kind));
    let is_in_group = match group {
        EventGroup::All => has(&MESSAGES) || has(&STATES) || has(&OTHERS),
        EventGroup::Messages => has(&MESSAGES),
        EventGroup::States => has(&STATES),
        EventGroup::Attention => has(&ATTENTION),
    };
    let is_of = |id: &str| processes.iter().any(|process| process == id);
    let is_sender = matches!(&event.actor, Actor::Agent { process_id } if is_of(process_id));
    is_in_group && (event.process_id.as_deref().is_some_and(is_of) || is_sender && has(&MESSAGES))
}

/// When it was stored.
pub(super) fn time_of(event: &EventRecord) -> Option<u64> {
    parse_time(&event.time)
}

/// The event as a place.
pub(super) fn place(event: &EventRecord) -> PastPlace {
    let details = DETAILS.iter().filter_map(|member| match event.data.get(*member)? {
        Value::String(text) => Some(short(text)),
        Value::Number(number) => Some(format!("{member} {number}")),
        _ => None,
    });
    PastPlace {
        process_id: event.process_id.clone(),
        offset: event.offset,
        kind: Some(event.kind.clone()),
        text: details.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
    }
}

/// A text on one line, without its end if it is too long.
pub(super) fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, process: &str, data: Value) -> EventRecord {
        let data = data.as_object().cloned().unwrap_or_default();
        let process_id = Some(process.to_owned());
        EventRecord { kind: kind.to_owned(), process_id, data, ..EventRecord::default() }
    }

    #[test]
    fn events_count_for_the_processes_that_they_are_about() {
        let shown = ["p1".to_owned()];
        let blocked = event("agent.blocked", "p1", json!({}));
        for group in [EventGroup::All, EventGroup::States, EventGroup::Attention] {
            assert!(is_in(group, &blocked, &shown), "{group:?}");
        }
        assert!(!is_in(EventGroup::Messages, &blocked, &shown));
        assert!(!is_in(EventGroup::All, &blocked, &["p2".to_owned()]));
        let sent =
            EventRecord { actor: Actor::agent("p1"), ..event("message.accepted", "p2", json!({})) };
        assert!(is_in(EventGroup::Messages, &sent, &shown), "p1 sent it");
        let pad =
            EventRecord { actor: Actor::agent("p1"), ..event("pad.written", "p1", json!({})) };
        assert!(!is_in(EventGroup::All, &pad, &shown));
    }

    #[test]
    fn a_place_says_what_its_event_says() {
        let text = |data| place(&event("agent.blocked", "p1", data)).text;
        assert_eq!(
            text(json!({"reason": "a dialog", "question": " may I\n push? "})),
            "may I push?"
        );
        assert_eq!(text(json!({"reason": "a dialog", "question": null})), "a dialog");
        assert_eq!(text(json!({"code": 2})), "code 2");
        assert_eq!(text(json!({})), "");
    }
}
