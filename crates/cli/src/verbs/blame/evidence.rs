//! What events tell about a commit: the process that made it, its turn, the prompt before it, and who answered its
//! dialogs. Events are taken in their order; nothing is concluded that they do not say.

use std::collections::BTreeMap;

use patterm_wire::events::{
    Actor, AnswerEvidence, EventQuery, EventRecord, Fact, GitEvidence, parse_time,
};
use serde::Serialize;

use super::process_of;

/// Answered dialogs that are listed: the last ones before the commit.
const MOST_APPROVALS: usize = 20;

/// Messages that are not delivered yet.
const MOST_MESSAGES: usize = 1_024;

/// An event that something is concluded from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    /// The number of the event.
    pub(super) event: u64,
    /// Its time.
    pub(super) at: String,
}

impl Seen {
    fn of(event: &EventRecord) -> Self {
        Self { event: event.seq, at: event.time.clone() }
    }
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Presence {
    pub(super) process_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// `agent`, `command` or `terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preset: Option<String>,
}

impl Presence {
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::ProcessCreated { name, kind, preset, .. } => {
                self.name = Some(name.clone());
                self.kind = Some(kind.clone());
                self.preset.clone_from(preset);
            }
            Fact::ProcessRenamed { name, .. } => self.name = Some(name.clone()),
            _ => {}
        }
    }
}

/// A turn of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Turn {
    pub(super) began: Seen,
    /// It ended after the commit, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Seen>,
}

/// A message that an agent got, a first prompt or a timer's text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Prompt {
    pub(super) message_id: u64,
    pub(super) kind: String,
    pub(super) from: Actor,
    pub(super) accepted: Seen,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// Input that was typed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TypedInput {
    pub(super) by: Actor,
    pub(super) length: u64,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// A dialog that was answered, from patterm's list of dialogs, or by somebody who typed in the pane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Approval {
    pub(super) question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) option: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) by: Actor,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// What events tell about a commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Story {
    /// The event about the commit.
    pub(super) recorded: Seen,
    /// Who made it.
    pub(super) actor: Actor,
    /// The process in whose pane it was made, and its run.
    pub(super) process: Presence,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<u64>,
    /// The agent, if that is another process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<Presence>,
    pub(super) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    pub(super) repository: String,
    /// When the command ended.
    pub(super) ended_at: String,
    /// The turn of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<Turn>,
    /// The last message before the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<Prompt>,
    /// What was typed last before the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<TypedInput>,
    /// The dialogs that were answered in the turn, before the commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) approvals: Vec<Approval>,
    #[serde(skip)]
    evidence: GitEvidence,
    /// The question of a dialog that nobody is known to have answered.
    #[serde(skip)]
    asked: Option<String>,
    /// Messages that are accepted, but not delivered yet.
    #[serde(skip)]
    waiting: BTreeMap<u64, Prompt>,
}

impl Story {
    /// What the event about the commit itself tells.
    pub(super) fn of(made: &EventRecord) -> Self {
        let id = made.process_id.clone().unwrap_or_default();
        let agent = process_of(&made.actor).filter(|agent| *agent != id);
        let of = |id: &str| Presence { process_id: id.to_owned(), ..Presence::default() };
        let mut story = Self {
            recorded: Seen::of(made),
            actor: made.actor.clone(),
            agent: agent.map(of),
            process: of(&id),
            run: made.run,
            command: String::new(),
            branch: None,
            repository: String::new(),
            ended_at: made.time.clone(),
            turn: None,
            prompt: None,
            input: None,
            approvals: Vec::new(),
            evidence: GitEvidence::Time,
            asked: None,
            waiting: BTreeMap::new(),
        };
        if let Some(Fact::GitCommit { command, branch, repository, ended_at, evidence, .. }) =
            made.fact()
        {
            (story.command, story.branch, story.repository) = (command, branch, repository);
            story.evidence = evidence;
            if parse_time(&ended_at).is_some() {
                story.ended_at = ended_at;
            }
        }
        story
    }

    /// The events that tell more.
    pub(super) fn query(&self) -> EventQuery {
        let types = ["agent.*", "dialog.answered", "input.sent", "message.*", "process.*"];
        EventQuery { types: types.map(str::to_owned).to_vec(), ..EventQuery::default() }
    }

    /// What shows who made it.
    pub(super) fn evidence(&self) -> String {
        match &self.evidence {
            GitEvidence::ProcessTree => "process_tree".to_owned(),
            GitEvidence::Time => "time".to_owned(),
            GitEvidence::Other(other) => other.clone(),
        }
    }

    /// The process that takes turns and gets prompts.
    fn worker(&self) -> &str {
        &self.agent.as_ref().unwrap_or(&self.process).process_id
    }

    /// Takes the next event.
    pub(super) fn note(&mut self, event: &EventRecord) {
        let Some(id) = event.process_id.as_deref() else { return };
        let Some(fact) = event.fact() else { return };
        // The event about a commit may be recorded after others that happened later.
        let is_before = event.seq < self.recorded.event && event.time <= self.ended_at;
        let is_workers = id == self.worker();
        if !is_before {
            let ends = matches!(fact, Fact::AgentTurnEnded { .. }) || is_end_of_run(&fact);
            if let Some(turn) =
                self.turn.as_mut().filter(|turn| is_workers && ends && turn.ended.is_none())
            {
                turn.ended = Some(Seen::of(event));
            }
            return;
        }
        if id == self.process.process_id {
            self.process.note(&fact);
        }
        if let Some(agent) = self.agent.as_mut().filter(|agent| agent.process_id == id) {
            agent.note(&fact);
        }
        if let Fact::InputSent { length } = fact
            && (is_workers || id == self.process.process_id)
        {
            let (by, seen) = (event.actor.clone(), Seen::of(event));
            if let Some(question) = self.asked.take_if(|_| is_workers) {
                let (by, seen) = (by.clone(), seen.clone());
                self.approve(Approval { question, option: None, key: None, by, seen });
            }
            self.input = Some(TypedInput { by, length, seen });
        } else if is_workers {
            self.note_worker(event, fact);
        }
    }

    fn note_worker(&mut self, event: &EventRecord, fact: Fact) {
        match fact {
            Fact::AgentWorking { .. } if self.turn.is_none() => {
                self.turn = Some(Turn { began: Seen::of(event), ended: None });
            }
            Fact::AgentBlocked { question, .. } => self.asked = question,
            // A prompt may have been delivered during the turn before.
            Fact::AgentTurnEnded { .. } => {
                (self.turn, self.asked) = (None, None);
                self.approvals.clear();
            }
            Fact::ProcessStarted {} => {
                (self.turn, self.asked, self.prompt, self.input) = (None, None, None, None);
                self.approvals.clear();
            }
            Fact::MessageAccepted { message_id, kind, text, .. } => {
                let (from, accepted) = (event.actor.clone(), Seen::of(event));
                let prompt = Prompt { message_id, kind, from, accepted, text };
                self.waiting.insert(message_id, prompt);
                if self.waiting.len() > MOST_MESSAGES {
                    self.waiting.pop_first();
                }
            }
            Fact::MessageDelivered { message_id, .. } => {
                self.prompt = self.waiting.remove(&message_id).or(self.prompt.take());
            }
            // That somebody typed is known from the input, too.
            Fact::DialogAnswered { evidence: AnswerEvidence::Typed, .. }
                if self.asked.is_none() => {}
            Fact::DialogAnswered { question, option, key, evidence: _ } => {
                let (by, seen) = (event.actor.clone(), Seen::of(event));
                self.asked = None;
                self.approve(Approval { question, option, key, by, seen });
            }
            _ => {}
        }
    }

    fn approve(&mut self, approval: Approval) {
        self.approvals.push(approval);
        let excess = self.approvals.len().saturating_sub(MOST_APPROVALS);
        self.approvals.drain(..excess);
    }
}

fn is_end_of_run(fact: &Fact) -> bool {
    matches!(fact, Fact::ProcessExited { .. } | Fact::ProcessStopped { .. } | Fact::ProcessLost {})
}

/// Which agents were in a turn at a time.
#[derive(Debug)]
pub(super) struct Presences {
    at_ms: u64,
    all: BTreeMap<String, (Presence, bool)>,
}

impl Presences {
    pub(super) fn at(at_ms: u64) -> Self {
        Self { at_ms, all: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, event: &EventRecord) {
        let is_before = parse_time(&event.time).is_some_and(|at| at <= self.at_ms);
        let (Some(id), Some(fact), true) = (&event.process_id, event.fact(), is_before) else {
            return;
        };
        let presence = Presence { process_id: id.clone(), ..Presence::default() };
        let (process, in_a_turn) = self.all.entry(id.clone()).or_insert((presence, false));
        process.note(&fact);
        match fact {
            Fact::AgentWorking { .. } => *in_a_turn = true,
            Fact::AgentTurnEnded { .. } | Fact::ProcessStarted {} => *in_a_turn = false,
            _ if is_end_of_run(&fact) => *in_a_turn = false,
            _ => {}
        }
    }

    pub(super) fn in_a_turn(self) -> Vec<Presence> {
        self.all
            .into_values()
            .filter(|(_, in_a_turn)| *in_a_turn)
            .map(|(process, _)| process)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{commit, created, event, story};
    use super::*;

    #[test]
    fn the_turn_the_prompt_and_the_answers_before_a_commit_are_found() {
        let story = story();
        assert_eq!(story.process.name.as_deref(), Some("lead"));
        let turn = story.turn.as_ref().unwrap();
        assert_eq!((turn.began.event, turn.ended.as_ref().unwrap().event), (9, 15));
        let prompt = story.prompt.as_ref().unwrap();
        assert_eq!((prompt.message_id, &prompt.from), (8, &Actor::agent("p1")));
        let questions: Vec<_> = story.approvals.iter().map(|a| a.question.as_str()).collect();
        assert_eq!(questions, ["push?"]);
        assert_eq!((story.agent.as_ref(), story.input.as_ref()), (None, None));
    }

    #[test]
    fn a_commit_in_another_pane_belongs_to_the_turn_of_the_agent_above() {
        let fact = commit(9_000, GitEvidence::Time);
        let mut story = Story::of(&event(10, "p5", Actor::agent("p3"), &fact));
        let typed = Fact::InputSent { length: 4 };
        let working = Fact::AgentWorking { reason: String::new() };
        for event in [
            event(1, "p3", Actor::cli(), &created("lead")),
            event(2, "p3", Actor::System, &working),
            event(3, "p5", Actor::agent("p3"), &typed),
            event(4, "p6", Actor::agent("p3"), &typed),
        ] {
            story.note(&event);
        }
        assert_eq!(story.agent.as_ref().unwrap().name.as_deref(), Some("lead"));
        assert_eq!(story.turn.as_ref().unwrap().began.event, 2);
        assert_eq!(story.input.as_ref().unwrap().seen.event, 3);
        assert_eq!(story.evidence(), "time");
    }

    #[test]
    fn a_dialog_that_was_answered_in_the_pane_names_who_typed() {
        let fact = commit(9_000, GitEvidence::ProcessTree);
        let mut story = Story::of(&event(10, "p3", Actor::agent("p3"), &fact));
        let blocked = |question: &str| Fact::AgentBlocked {
            reason: String::new(),
            question: Some(question.into()),
            options: Vec::new(),
        };
        let typed = Fact::InputSent { length: 1 };
        for event in [
            event(1, "p3", Actor::System, &Fact::AgentWorking { reason: String::new() }),
            event(2, "p3", Actor::System, &blocked("commit?")),
            event(3, "p3", Actor::view(), &typed),
            event(4, "p3", Actor::cli(), &typed),
        ] {
            story.note(&event);
        }
        let answered: Vec<_> =
            story.approvals.iter().map(|a| (a.question.as_str(), &a.by)).collect();
        assert_eq!(answered, [("commit?", &Actor::view())]);
    }

    #[test]
    fn agents_in_a_turn_at_a_time_are_listed_without_a_conclusion() {
        let mut presences = Presences::at(3_500);
        let working = Fact::AgentWorking { reason: String::new() };
        let ended = Fact::AgentTurnEnded { ms: 1, tokens: None };
        for (seq, id, fact) in [
            (1, "p1", &created("a")),
            (2, "p1", &working),
            (2, "p2", &working),
            (3, "p2", &ended),
            (4, "p1", &ended),
        ] {
            presences.note(&event(seq, id, Actor::System, fact));
        }
        let found = presences.in_a_turn();
        assert_eq!(found.iter().map(|p| p.process_id.as_str()).collect::<Vec<_>>(), ["p1"]);
    }
}
