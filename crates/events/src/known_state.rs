//! The state that the events so far describe: processes, messages, timers and scratchpads. When a server starts, it
//! compares this with the state that it loads, and records the events that are missing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use patterm_wire::events::Fact;
use serde::{Deserialize, Serialize};

use crate::new_event::About;

/// Messages that are neither delivered nor dropped: far more than processes hold. What stalled long ago stays open.
const MOST_OPEN: usize = 4_096;

/// The last commits: more than one git command makes that is recorded.
const MOST_COMMITS: usize = 1_024;

/// The state that the events describe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownState {
    /// The processes that have an entry.
    pub processes: BTreeMap<String, KnownProcess>,
    /// The messages that were neither delivered nor dropped, with whether they stalled.
    #[serde(with = "as_pairs")]
    pub open_messages: BTreeMap<u64, bool>,
    /// The highest number of a message.
    pub last_message: u64,
    /// The timers that did not end, with whether they are paused.
    pub open_timers: BTreeMap<String, bool>,
    /// The revisions of the scratchpads.
    pub pads: BTreeMap<String, u64>,
    /// The hash of the project file that was trusted last.
    pub trusted: Option<String>,
    /// The hash of the content of the project file.
    #[serde(default)]
    pub project_file: Option<String>,
    /// The version of the server that started last.
    pub version: Option<String>,
    /// The commits that were recorded last, the newest at the end.
    #[serde(default)]
    pub commits: VecDeque<String>,
    /// The shared servers that run, each with the caller that it is for.
    #[serde(default)]
    pub servers: BTreeSet<(String, Option<String>)>,
}

/// What the events say about a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProcess {
    /// Its label.
    #[serde(default)]
    pub name: Option<String>,
    /// `agent`, `command` or `terminal`.
    #[serde(default)]
    pub kind: Option<String>,
    /// The number of its last run.
    pub run: u64,
    /// The state of that run.
    pub status: KnownStatus,
    /// It needs a person's attention.
    #[serde(default)]
    pub attention: bool,
    /// The last event about the state of the agent in this run, such as `agent.idle`.
    #[serde(default)]
    pub agent: Option<String>,
    /// The ports on which this run listens.
    #[serde(default)]
    pub ports: BTreeSet<u16>,
}

/// What the events say about a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownStatus {
    /// It did not begin.
    #[default]
    Created,
    /// It began.
    Started,
    /// It is over.
    Ended,
}

/// Numbers cannot be keys where a file has its version beside its content.
mod as_pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<u64, bool>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<u64, bool>, D::Error> {
        Ok(Vec::<(u64, bool)>::deserialize(from)?.into_iter().collect())
    }
}

impl KnownState {
    /// Applies an event.
    pub(crate) fn note(&mut self, about: &About, fact: &Fact) {
        match fact {
            Fact::MessageAccepted { message_id, .. } => {
                self.open_messages.insert(*message_id, false);
                while self.open_messages.len() > MOST_OPEN {
                    self.open_messages.pop_first();
                }
                self.last_message = self.last_message.max(*message_id);
            }
            Fact::MessageQueued { message_id, .. } => self.note_message(*message_id, false),
            Fact::MessageStalled { message_id, .. } => self.note_message(*message_id, true),
            Fact::MessageDelivered { message_id, .. } | Fact::MessageDropped { message_id, .. } => {
                self.open_messages.remove(message_id);
            }
            Fact::TimerSet { timer_id, .. } | Fact::TimerResumed { timer_id } => {
                self.open_timers.insert(timer_id.clone(), false);
            }
            Fact::TimerPaused { timer_id } => drop(self.open_timers.insert(timer_id.clone(), true)),
            Fact::TimerFired { timer_id } | Fact::TimerCancelled { timer_id, .. } => {
                self.open_timers.remove(timer_id);
            }
            Fact::PadCreated { name, revision, .. }
            | Fact::PadWritten { name, revision, .. }
            | Fact::PadAppended { name, revision, .. }
            | Fact::PadEditedOutside { name, revision, .. } => {
                self.pads.insert(name.clone(), *revision);
            }
            Fact::PadDeleted { name } => drop(self.pads.remove(name)),
            Fact::ProjectFileChanged { hash } => self.project_file.clone_from(hash),
            Fact::ProjectFileTrusted { hash } => self.trusted = Some(hash.clone()),
            Fact::SystemStarted { version } => self.version = Some(version.clone()),
            Fact::ServerStarted { server, owner } => {
                self.servers.insert((server.clone(), owner.clone()));
            }
            Fact::ServerStopped { server, owner } | Fact::ServerFailed { server, owner, .. } => {
                self.servers.remove(&(server.clone(), owner.clone()));
            }
            Fact::GitCommit { commit, .. } => {
                self.commits.push_back(commit.clone());
                let excess = self.commits.len().saturating_sub(MOST_COMMITS);
                self.commits.drain(..excess);
            }
            _ => self.note_process(about, fact),
        }
    }

    fn note_message(&mut self, id: u64, has_stalled: bool) {
        // A delivery may still be called into doubt later, which does not reopen the message.
        self.open_messages.entry(id).and_modify(|stalled| *stalled = has_stalled);
    }

    fn note_process(&mut self, about: &About, fact: &Fact) {
        let Some(id) = &about.process_id else { return };
        match fact {
            Fact::ProcessCreated { name, kind, .. } => {
                let (name, kind) = (Some(name.clone()), Some(kind.clone()));
                let process = KnownProcess { name, kind, ..KnownProcess::default() };
                self.processes.insert(id.clone(), process);
            }
            Fact::ProcessClosed {} => drop(self.processes.remove(id)),
            _ => {
                let Some(process) = self.processes.get_mut(id) else { return };
                process.note(about.run, fact);
            }
        }
    }
}

impl KnownProcess {
    fn note(&mut self, run: Option<u64>, fact: &Fact) {
        match fact {
            Fact::ProcessStarted {} => (self.status, self.agent) = (KnownStatus::Started, None),
            Fact::PortOpened { port } => {
                self.ports.insert(*port);
                return;
            }
            Fact::PortClosed { port } => {
                self.ports.remove(port);
                return;
            }
            Fact::ProcessExited { .. } | Fact::ProcessStopped { .. } | Fact::ProcessLost {} => {
                self.status = KnownStatus::Ended;
            }
            Fact::AgentWorking { .. }
            | Fact::AgentIdle { .. }
            | Fact::AgentBlocked { .. }
            | Fact::AgentFailed { .. }
            | Fact::AgentLimited { .. } => self.agent = Some(fact.name().to_owned()),
            Fact::ProcessRenamed { name, .. } => return self.name = Some(name.clone()),
            Fact::AttentionRaised { .. } => return self.attention = true,
            Fact::AttentionCleared {} => return self.attention = false,
            _ => return,
        }
        self.run = run.unwrap_or(self.run);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_add_up_to_a_state() {
        let mut known_state = KnownState::default();
        let p1 = About::process("p1");
        let created = Fact::ProcessCreated {
            name: "a".into(),
            kind: "agent".into(),
            preset: None,
            parent: None,
        };
        known_state.note(&p1, &created);
        known_state.note(&p1.clone().run(3), &Fact::ProcessStarted {});
        known_state.note(&p1.clone().run(3), &Fact::AttentionRaised { reason: "?".into() });
        for port in [80, 81] {
            known_state.note(&p1.clone().run(3), &Fact::PortOpened { port });
        }
        known_state.note(&p1.clone().run(3), &Fact::PortClosed { port: 81 });
        let process = KnownProcess {
            name: Some("a".into()),
            kind: Some("agent".into()),
            run: 3,
            status: KnownStatus::Started,
            attention: true,
            agent: None,
            ports: BTreeSet::from([80]),
        };
        assert_eq!(known_state.processes["p1"], process);
        let accepted =
            Fact::MessageAccepted { message_id: 4, kind: "message".into(), length: 1, text: None };
        known_state.note(&p1, &accepted);
        known_state.note(&p1, &Fact::MessageStalled { message_id: 4, evidence: String::new() });
        assert_eq!((known_state.last_message, known_state.open_messages.get(&4)), (4, Some(&true)));
        known_state.note(&p1, &Fact::MessageDelivered { message_id: 4, evidence: String::new() });
        known_state.note(&p1, &Fact::MessageStalled { message_id: 4, evidence: String::new() });
        assert!(known_state.open_messages.is_empty() && known_state.last_message == 4);
        let text = serde_json::to_string(&known_state).unwrap();
        assert_eq!(serde_json::from_str::<KnownState>(&text).unwrap(), known_state);
        known_state.note(&p1, &Fact::ProcessClosed {});
        assert!(known_state.processes.is_empty());
    }

    #[test]
    fn the_last_commits_are_known() {
        let mut known_state = KnownState::default();
        for number in 0..=MOST_COMMITS {
            let fact = json!({"type": "git.commit", "data": {"commit": number.to_string()}});
            known_state.note(&About::project(), &serde_json::from_value(fact).unwrap());
        }
        assert_eq!(
            (known_state.commits.len(), known_state.commits[0].as_str()),
            (MOST_COMMITS, "1")
        );
    }
}
