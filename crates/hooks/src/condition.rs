//! Whether something that happened is still true: a later event about the same thing says that it is not.

use patterm_wire::events::{EventRecord, Fact};

/// Types of events that end what others began, by the groups of types that they end.
const ENDS: [(&str, &[&str]); 6] = [
    ("agent.", &["process.started", "process.exited", "process.stopped", "process.lost"]),
    ("attention.", &[]),
    ("message.", &[]),
    ("port.", &["process.exited", "process.stopped", "process.lost"]),
    ("process.", &[]),
    ("server.", &[]),
];

/// Events that only say that something was done: they stay true.
const DONE: [&str; 10] = [
    "agent.ready",
    "agent.resumed",
    "agent.turn_ended",
    "message.delivered",
    "message.dropped",
    "process.closed",
    "process.created",
    "process.renamed",
    "process.restarted",
    "process.signalled",
];

/// The event that removes everything about a process.
const CLOSED: &str = "process.closed";

/// Whether the later of two events says that the earlier one is no longer true.
pub(crate) fn is_ended_by(earlier: &EventRecord, later: &EventRecord) -> bool {
    if !can_end(&earlier.kind) {
        return false;
    }
    if earlier.process_id.is_some() && earlier.process_id != later.process_id {
        return false;
    }
    if later.kind == CLOSED && earlier.process_id.is_some() {
        return true;
    }
    let Some((group, others)) = rule(&earlier.kind) else { return false };
    if others.contains(&later.kind.as_str()) {
        return true;
    }
    let is_same_group = later.kind.starts_with(group) && is_state(&later.kind);
    is_same_group && subject(earlier) == subject(later)
}

/// The types of events that can end those of a type, or groups of them.
pub(crate) fn enders(kind: &str) -> Vec<String> {
    if !can_end(kind) {
        return Vec::new();
    }
    let Some((group, others)) = rule(kind) else { return Vec::new() };
    let mut enders = vec![format!("{group}*"), CLOSED.to_owned()];
    enders.extend(others.iter().map(|kind| (*kind).to_owned()));
    enders
}

fn rule(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    ENDS.iter().find(|(group, _)| kind.starts_with(group)).copied()
}

/// Whether an event of this type can stop being true.
fn can_end(kind: &str) -> bool {
    rule(kind).is_some() && !DONE.contains(&kind)
}

/// Whether an event of this type says in which state something is now. What ends a message does, too.
fn is_state(kind: &str) -> bool {
    !DONE.contains(&kind) || kind.starts_with("message.")
}

/// What an event is about, besides its process.
fn subject(event: &EventRecord) -> Option<String> {
    Some(match event.fact()? {
        Fact::PortOpened { port } | Fact::PortClosed { port } => port.to_string(),
        Fact::ServerStarted { server, owner }
        | Fact::ServerFailed { server, owner, .. }
        | Fact::ServerStopped { server, owner } => {
            format!("{server} {}", owner.unwrap_or_default())
        }
        Fact::MessageAccepted { message_id, .. }
        | Fact::MessageQueued { message_id, .. }
        | Fact::MessageStalled { message_id, .. }
        | Fact::MessageDelivered { message_id, .. }
        | Fact::MessageDropped { message_id, .. } => message_id.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, process: &str, data: Value) -> EventRecord {
        let Value::Object(data) = data else { panic!("{data}") };
        let process_id = Some(process.to_owned()).filter(|id| !id.is_empty());
        EventRecord { kind: kind.into(), process_id, data, ..EventRecord::default() }
    }

    fn plain(kind: &str) -> EventRecord {
        event(kind, "p1", json!({ "reason": "x", "tool": "x" }))
    }

    #[test]
    fn states_end_with_the_next_one_of_the_same_process() {
        for (earlier, later) in [
            ("agent.blocked", "agent.working"),
            ("agent.blocked", "agent.blocked"),
            ("agent.limited", "agent.working"),
            ("agent.idle", "process.exited"),
            ("process.exited", "process.started"),
            ("process.exited", "process.closed"),
            ("attention.raised", "attention.cleared"),
        ] {
            assert!(is_ended_by(&plain(earlier), &plain(later)), "{earlier} {later}");
            let other = EventRecord { process_id: Some("p2".into()), ..plain(later) };
            assert!(!is_ended_by(&plain(earlier), &other), "{earlier} {later} of another process");
            let query = patterm_wire::events::EventQuery {
                types: enders(earlier),
                ..patterm_wire::events::EventQuery::default()
            };
            assert!(query.matches(later, None), "{later} is read for {earlier}");
        }
    }

    #[test]
    fn what_was_done_stays_true() {
        for (earlier, later) in [
            ("agent.blocked", "agent.turn_ended"),
            ("agent.turn_ended", "agent.idle"),
            ("process.exited", "process.renamed"),
            ("process.started", "process.restarted"),
            ("git.commit", "git.commit"),
            ("system.started", "system.started"),
            ("process.created", "process.exited"),
        ] {
            assert!(!is_ended_by(&plain(earlier), &plain(later)), "{earlier} {later}");
        }
    }

    #[test]
    fn ports_messages_and_servers_are_told_apart() {
        let port = |kind: &str, port: u16| event(kind, "p1", json!({ "port": port }));
        assert!(is_ended_by(&port("port.opened", 1), &port("port.closed", 1)));
        assert!(!is_ended_by(&port("port.opened", 1), &port("port.closed", 2)));
        assert!(is_ended_by(&port("port.opened", 1), &plain("process.exited")));
        let message = |kind: &str, id: u64| event(kind, "p1", json!({ "message_id": id }));
        for later in ["message.delivered", "message.dropped", "message.stalled"] {
            assert!(is_ended_by(&message("message.queued", 1), &message(later, 1)));
            assert!(!is_ended_by(&message("message.queued", 1), &message(later, 2)));
        }
        let server = |kind: &str, name: &str| event(kind, "", json!({ "server": name }));
        assert!(is_ended_by(&server("server.failed", "a"), &server("server.started", "a")));
        assert!(!is_ended_by(&server("server.failed", "a"), &server("server.started", "b")));
    }
}
