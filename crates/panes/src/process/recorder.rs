//! Events about the process table: after each write, the table is compared with what was recorded.

use std::collections::BTreeMap;

use patterm_events::{About, EventLog, KnownStatus};
use patterm_wire::events::{Actor, Fact};

use super::record::{Exit, Kind, Process, Status};
use super::run_number::RunNumber;

/// What has been recorded about the entries of the table.
#[derive(Debug, Default)]
pub(super) struct ProcessRecorder {
    events: EventLog,
    entries: BTreeMap<String, RecordedEntry>,
}

#[derive(Debug, Clone, Default)]
struct RecordedEntry {
    name: Option<String>,
    run: u64,
    status: KnownStatus,
    attention: Option<String>,
    /// The reason is not known, but there is one.
    has_attention: bool,
}

impl ProcessRecorder {
    /// Continues after the events of earlier servers.
    pub(super) fn new(events: EventLog) -> Self {
        let recorded = events.known_state().processes.into_iter().map(|(id, process)| {
            let (run, status, has_attention) = (process.run, process.status, process.attention);
            (id, RecordedEntry { name: None, run, status, attention: None, has_attention })
        });
        let entries = recorded.collect();
        Self { events, entries }
    }

    /// Records what has changed. `recovered` changes are those that an earlier server did not
    /// record.
    pub(super) fn compare(&mut self, processes: &[Process], recovered: bool) {
        let is_gone = |id: &&String| !processes.iter().any(|process| process.id.as_str() == **id);
        let gone: Vec<String> = self.entries.keys().filter(is_gone).cloned().collect();
        for id in gone {
            self.entries.remove(&id);
            self.record(About::process(id), Fact::ProcessClosed {}, recovered);
        }
        for process in processes {
            let known = self.entries.get(process.id.as_str()).cloned();
            let (entry, facts) = compare(known, process);
            self.entries.insert(process.id.to_string(), entry);
            for fact in facts {
                let mut about = About::process(&process.id).run(process.runs.get());
                if matches!(fact, Fact::ProcessStarted {}) {
                    about = about.at(process.run_offset.get());
                }
                self.record(about, fact, recovered);
            }
        }
    }

    fn record(&self, about: About, fact: Fact, recovered: bool) {
        match (recovered, &fact) {
            (true, _) => self.events.record_recovered(about, fact),
            // A program ends by itself, whoever happens to notice it.
            (_, Fact::ProcessExited { .. } | Fact::ProcessLost {}) => {
                self.events.record_by(Actor::System, about, fact);
            }
            _ => self.events.record(about, fact),
        }
    }
}

/// The entry as it is now, and what happened to it.
fn compare(known: Option<RecordedEntry>, process: &Process) -> (RecordedEntry, Vec<Fact>) {
    let mut facts = Vec::new();
    let mut entry = known.unwrap_or_else(|| {
        facts.push(created(process));
        RecordedEntry { name: Some(process.name.clone()), ..RecordedEntry::default() }
    });
    let before = entry.name.replace(process.name.clone()).filter(|name| *name != process.name);
    facts.extend(before.map(|before| Fact::ProcessRenamed { name: process.name.clone(), before }));
    compare_run(&mut entry, process, &mut facts);
    compare_attention(&mut entry, process, &mut facts);
    (entry, facts)
}

fn compare_run(entry: &mut RecordedEntry, process: &Process, facts: &mut Vec<Fact>) {
    let run = process.runs.get();
    let is_over = !process.status.is_alive();
    let is_new = run != entry.run;
    let has_begun = process.runs != RunNumber::NONE && process.status != Status::Starting;
    if !has_begun {
        return;
    }
    let could_begin = process.status != Status::Failed;
    if (is_new || entry.status == KnownStatus::Created) && could_begin {
        facts.push(Fact::ProcessStarted {});
        if process.runs != RunNumber::FIRST {
            facts.push(Fact::ProcessRestarted { reason: None });
        }
    }
    if is_over && (is_new || entry.status != KnownStatus::Ended) {
        facts.push(ended(process));
    }
    entry.run = run;
    entry.status = if is_over { KnownStatus::Ended } else { KnownStatus::Started };
}

fn compare_attention(entry: &mut RecordedEntry, process: &Process, facts: &mut Vec<Fact>) {
    let reason = process.attention.as_ref().map(|attention| attention.reason.clone());
    let was_told = entry.has_attention && entry.attention.is_none() && reason.is_some();
    if !was_told && entry.attention != reason {
        match &reason {
            Some(reason) => facts.push(Fact::AttentionRaised { reason: reason.clone() }),
            None => facts.push(Fact::AttentionCleared {}),
        }
    } else if entry.has_attention && reason.is_none() {
        facts.push(Fact::AttentionCleared {});
    }
    entry.has_attention = reason.is_some();
    entry.attention = reason;
}

fn created(process: &Process) -> Fact {
    let kind = match process.kind {
        Kind::Agent => "agent",
        Kind::Command => "command",
        Kind::Terminal => "terminal",
    };
    Fact::ProcessCreated {
        name: process.name.clone(),
        kind: kind.to_owned(),
        preset: process.agent.as_ref().map(|agent| agent.preset.clone()),
        parent: process.parent_id.as_ref().map(ToString::to_string),
    }
}

fn ended(process: &Process) -> Fact {
    let Exit { code, signal } = process.exit.unwrap_or_default();
    match process.status {
        Status::Stopped => Fact::ProcessStopped { code, signal },
        Status::Lost => Fact::ProcessLost {},
        Status::Failed => {
            Fact::ProcessExited { code, signal, error: Some("it could not be started".to_owned()) }
        }
        Status::Exited | Status::Starting | Status::Running => {
            Fact::ProcessExited { code, signal, error: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Attention, ProcessId};

    fn process(run: u64, status: Status) -> Process {
        let id = ProcessId::new(1);
        let runs = RunNumber::new(run);
        Process { name: "a".into(), runs, status, ..Process::unstarted(id) }
    }

    fn names(facts: &[Fact]) -> Vec<&'static str> {
        facts.iter().map(Fact::name).collect()
    }

    #[test]
    fn each_change_of_an_entry_is_recorded_once() {
        let steps = [
            (process(1, Status::Starting), vec!["process.created"]),
            (process(1, Status::Running), vec!["process.started"]),
            (process(1, Status::Running), vec![]),
            (process(1, Status::Exited), vec!["process.exited"]),
            (process(2, Status::Starting), vec![]),
            (process(2, Status::Failed), vec!["process.exited"]),
            (process(3, Status::Running), vec!["process.started", "process.restarted"]),
            (process(3, Status::Stopped), vec!["process.stopped"]),
        ];
        let mut entry = None;
        for (process, expected) in steps {
            let (next, facts) = compare(entry, &process);
            assert_eq!(names(&facts), expected, "{process:?}");
            entry = Some(next);
        }
    }

    #[test]
    fn what_a_server_missed_is_found_from_what_was_recorded() {
        let recorded = |run, status, has_attention| {
            Some(RecordedEntry { name: None, run, status, attention: None, has_attention })
        };
        let mut called = process(1, Status::Running);
        called.attention = Some(Attention { reason: "?".into(), by: "p1".into(), at: 1 });
        let facts = |recorded, process: &Process| names(&compare(recorded, process).1);
        assert_eq!(facts(recorded(1, KnownStatus::Started, true), &called), [""; 0]);
        assert_eq!(facts(recorded(1, KnownStatus::Started, false), &called), ["attention.raised"]);
        let running = process(1, Status::Running);
        assert_eq!(facts(recorded(1, KnownStatus::Started, true), &running), ["attention.cleared"]);
        assert_eq!(facts(recorded(0, KnownStatus::Created, false), &running), ["process.started"]);
        let lost = process(1, Status::Lost);
        assert_eq!(facts(recorded(1, KnownStatus::Started, false), &lost), ["process.lost"]);
        assert_eq!(facts(recorded(1, KnownStatus::Ended, false), &lost), [""; 0]);
        let declared = process(0, Status::Stopped);
        assert_eq!(facts(None, &declared), ["process.created"], "not started yet");
    }
}
