//! Events about a commit, for the tests.

use patterm_wire::events::{Actor, AnswerEvidence, EventRecord, Fact, GitEvidence, format_time};
use serde_json::{Map, Value, json};

use super::evidence::Story;

/// An event about a process, a second after the one before.
pub(super) fn event(seq: u64, id: &str, actor: Actor, fact: &Fact) -> EventRecord {
    let Value::Object(mut fact) = json!(fact) else { unreachable!() };
    let data = match fact.remove("data") {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    let kind = fact["type"].as_str().unwrap().to_owned();
    let (time, process_id) = (format_time(seq * 1_000), Some(id.to_owned()));
    EventRecord { seq, time, kind, process_id, actor, data, ..EventRecord::default() }
}

/// A commit.
pub(super) fn commit(ended_ms: u64, evidence: GitEvidence) -> Fact {
    Fact::GitCommit {
        commit: "c".into(),
        subject: Some("a subject".into()),
        branch: Some("main".into()),
        repository: "/r".into(),
        command: "commit".into(),
        files: vec!["a".into()],
        file_count: Some(1),
        insertions: Some(1),
        deletions: Some(0),
        ended_at: format_time(ended_ms),
        evidence,
    }
}

/// The creation of an agent.
pub(super) fn created(name: &str) -> Fact {
    let (name, kind) = (name.to_owned(), "agent".to_owned());
    Fact::ProcessCreated { name, kind, preset: Some("claude".into()), parent: None }
}

fn accepted(message_id: u64) -> Fact {
    Fact::MessageAccepted { message_id, kind: "message".into(), length: 3, text: None }
}

/// An agent with two turns; the commit is in the second one.
pub(super) fn story() -> Story {
    let system = || Actor::System;
    let reason = String::new;
    let delivered = |message_id| Fact::MessageDelivered { message_id, evidence: reason() };
    let answered = |question: &str| Fact::DialogAnswered {
        question: question.into(),
        option: Some("Yes".into()),
        key: None,
        evidence: AnswerEvidence::Chosen,
    };
    let events = [
        event(1, "p3", Actor::cli(), &created("lead")),
        event(2, "p3", Actor::agent("p1"), &accepted(7)),
        event(3, "p3", system(), &delivered(7)),
        event(4, "p3", system(), &Fact::AgentWorking { reason: reason() }),
        event(5, "p3", Actor::view(), &answered("first?")),
        event(6, "p3", system(), &Fact::AgentTurnEnded { ms: 1, tokens: None }),
        event(7, "p3", Actor::agent("p1"), &accepted(8)),
        event(8, "p4", Actor::agent("p1"), &accepted(9)),
        event(9, "p3", system(), &Fact::AgentWorking { reason: reason() }),
        event(10, "p3", system(), &delivered(8)),
        event(11, "p3", Actor::view(), &answered("push?")),
        event(12, "p3", system(), &Fact::AgentWorking { reason: reason() }),
        // Recorded before the commit, but later than it.
        event(15, "p3", system(), &Fact::AgentTurnEnded { ms: 1, tokens: None }),
        event(17, "p3", Actor::view(), &answered("later?")),
    ];
    let fact = commit(14_000, GitEvidence::ProcessTree);
    let mut story = Story::of(&event(16, "p3", Actor::agent("p3"), &fact));
    events.iter().for_each(|event| story.note(event));
    story
}
