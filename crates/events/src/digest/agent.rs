//! One process while events are read: its state, and what it did within the window.

use std::collections::{BTreeSet, VecDeque};

use patterm_wire::digest::{AgentDigest, DigestEntry, StateTimes};
use patterm_wire::events::{AnswerEvidence, EventRecord, Fact};

use super::message::MessagesTo;
use super::text::{commit, ending, entry, file_count, question, short, short_name};
use crate::known_state::{KnownProcess, KnownStatus};

/// Entries of one process that are kept while events are read: the newest are shown.
const KEPT_ENTRIES: usize = 200;

/// Files of commits that are named.
const NAMED_FILES: usize = 20;

/// Files of commits that are kept apart.
const COUNTED_FILES: usize = 10_000;

/// What an agent does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AgentState {
    /// No event says so.
    #[default]
    Unknown,
    Working,
    Idle,
    Blocked,
    Limited,
    /// It does not run.
    Off,
}

/// A process of which something was read.
#[derive(Debug, Default)]
pub(super) struct ProcessTrack {
    pub(super) name: Option<String>,
    is_agent: bool,
    pub(super) is_closed: bool,
    state: AgentState,
    /// Since when it is in that state.
    since: u64,
    /// An event said so.
    is_known: bool,
    /// The event that began a state in which it waits for somebody.
    pub(super) waits: Option<DigestEntry>,
    /// What it asks for attention for.
    pub(super) attention: Option<DigestEntry>,
    attention_is_known: bool,
    /// Its last turn failed.
    pub(super) failed: Option<DigestEntry>,
    /// Its last run ended badly within the window.
    pub(super) ended_badly: Option<DigestEntry>,
    /// Something happened to it within the window.
    touched: bool,
    turns: u64,
    times: StateTimes,
    sent: u64,
    commits: u64,
    files: BTreeSet<String>,
    /// The files of the largest of them, which may name only some.
    most_files: u64,
    entries: VecDeque<DigestEntry>,
}

/// An event about a process.
pub(super) struct Step<'a> {
    pub(super) event: &'a EventRecord,
    pub(super) fact: &'a Fact,
    /// Its time.
    pub(super) now: u64,
    /// When the window began, if it has.
    pub(super) begun: Option<u64>,
    /// Since when nobody watched the process: it was recorded by the next server, after a crash.
    pub(super) outage: Option<u64>,
    /// It is within the window.
    pub(super) inside: bool,
    /// Who caused it.
    pub(super) by: String,
}

impl ProcessTrack {
    pub(super) fn is_agent(&self) -> bool {
        self.is_agent
    }

    /// It sent a message, which only agents do.
    pub(super) fn note_sent(&mut self) {
        self.sent += 1;
        (self.is_agent, self.touched) = (true, true);
    }

    /// Whether it runs and waits in this state.
    pub(super) fn is(&self, state: AgentState) -> bool {
        self.state == state && !self.is_closed
    }

    /// Since when it is in its state, if that was read.
    pub(super) fn known_since(&self) -> Option<u64> {
        self.is_known.then_some(self.since)
    }

    /// The window begins: what it waited for already is part of it.
    pub(super) fn begin(&mut self) {
        if let Some(waits) = self.waits.clone() {
            self.push(waits);
        }
    }

    pub(super) fn feed(&mut self, step: &Step<'_>) {
        self.touched |= step.inside;
        match step.fact {
            Fact::ProcessCreated { name, kind, .. } => {
                self.name = Some(short_name(name));
                self.is_agent = kind == "agent";
                self.switch(AgentState::Off, step);
            }
            Fact::ProcessRenamed { name, .. } => self.name = Some(short_name(name)),
            Fact::ProcessStarted {} => {
                (self.failed, self.ended_badly) = (None, None);
                self.switch(AgentState::Unknown, step);
            }
            Fact::ProcessRestarted { .. } => self.note(step, "was restarted".to_owned()),
            Fact::ProcessExited { code, signal, error } => {
                let text = ending(*code, *signal, error.as_deref());
                let is_bad = error.is_some() || signal.is_some() || code.is_some_and(|c| c != 0);
                self.end_run(step, text, is_bad);
            }
            Fact::ProcessStopped { .. } => {
                self.end_run(step, format!("was stopped by {}", step.by), false);
            }
            Fact::ProcessLost {} => {
                self.end_run(step, "was lost, with its end unknown".to_owned(), true);
            }
            Fact::ProcessClosed {} => {
                self.switch(AgentState::Off, step);
                self.is_closed = true;
                self.note(step, format!("was closed by {}", step.by));
            }
            Fact::AttentionRaised { reason } => {
                let reason = short(reason);
                self.attention = Some(entry(step.event, format!("asks for attention: {reason}")));
                self.attention_is_known = true;
                self.note(step, format!("asked for attention: {reason}"));
            }
            Fact::AttentionCleared {} => {
                (self.attention, self.attention_is_known) = (None, true);
            }
            Fact::GitCommit { commit: hash, subject, branch, files, .. } if step.inside => {
                self.commits += 1;
                let room = COUNTED_FILES.saturating_sub(self.files.len());
                self.files.extend(files.iter().take(room).map(|file| short(file)));
                self.most_files = self.most_files.max(file_count(step.event));
                let text = commit(step.event, hash, subject.as_deref(), branch.as_deref());
                self.note(step, text);
            }
            Fact::GitBranch { branch, .. } => {
                self.note(step, format!("switched to branch {}", short_name(branch)));
            }
            _ => self.feed_agent(step),
        }
    }

    fn feed_agent(&mut self, step: &Step<'_>) {
        match step.fact {
            Fact::AgentWorking { .. } => {
                self.failed = None;
                self.switch(AgentState::Working, step);
            }
            Fact::AgentIdle { .. } => self.switch(AgentState::Idle, step),
            Fact::AgentFailed { reason } => {
                self.switch(AgentState::Idle, step);
                let text = short(reason);
                self.failed = Some(entry(step.event, text.clone()));
                self.note(step, text);
            }
            Fact::AgentBlocked { reason, question: asked, options } => {
                let text = question(reason, asked.as_deref(), options);
                self.wait(AgentState::Blocked, step, format!("blocked: {text}"));
            }
            Fact::AgentLimited { reason, until } => {
                let until = until.as_deref().map(|until| format!(", until {}", short_name(until)));
                let text = format!(
                    "reached a usage limit{}: {}",
                    until.unwrap_or_default(),
                    short(reason)
                );
                self.wait(AgentState::Limited, step, text);
            }
            Fact::AgentTurnEnded { .. } if step.inside => self.turns += 1,
            Fact::DialogAnswered { question: asked, option, key, evidence } => {
                let chosen = option.as_deref().or(key.as_deref());
                let chosen = match (chosen, evidence) {
                    (Some(chosen), _) => Some(format!(": {}", short_name(chosen))),
                    (None, AnswerEvidence::Typed) => Some(" by typing, it seems".to_owned()),
                    (None, _) => None,
                };
                let text = format!(
                    "{} answered “{}”{}",
                    step.by,
                    short(asked),
                    chosen.unwrap_or_default()
                );
                self.note(step, text);
            }
            _ => {}
        }
        self.is_agent |= step.fact.name().starts_with("agent.");
    }

    fn end_run(&mut self, step: &Step<'_>, text: String, is_bad: bool) {
        if let Some(outage) = step.outage.filter(|outage| *outage >= self.since) {
            self.switch_at(AgentState::Unknown, outage, step.begun);
        }
        self.switch(AgentState::Off, step);
        self.ended_badly = (is_bad && step.inside).then(|| entry(step.event, text.clone()));
        (self.failed, self.attention) = (None, None);
        self.note(step, text);
    }

    /// It waits for somebody from now on.
    fn wait(&mut self, state: AgentState, step: &Step<'_>, text: String) {
        self.switch(state, step);
        self.waits = Some(entry(step.event, text.clone()));
        self.note(step, text);
    }

    fn switch(&mut self, state: AgentState, step: &Step<'_>) {
        self.switch_at(state, step.now, step.begun);
    }

    fn switch_at(&mut self, state: AgentState, now: u64, begun: Option<u64>) {
        self.add_time(now, begun);
        let lasted = now.saturating_sub(self.since);
        if let Some(waits) = self.waits.take()
            && let Some(shown) = self.entries.iter_mut().rev().find(|e| e.seq == waits.seq)
        {
            shown.ms = Some(lasted);
        }
        (self.state, self.since, self.is_known) = (state, now, true);
    }

    /// Counts the time in the state until now.
    fn add_time(&mut self, now: u64, begun: Option<u64>) {
        let Some(begun) = begun else { return };
        let ms = now.saturating_sub(self.since.max(begun));
        let times = &mut self.times;
        match self.state {
            AgentState::Unknown => times.unknown_ms += ms,
            AgentState::Working => times.working_ms += ms,
            AgentState::Idle => times.idle_ms += ms,
            AgentState::Blocked => times.blocked_ms += ms,
            AgentState::Limited => times.limited_ms += ms,
            AgentState::Off => {}
        }
    }

    /// Adds an entry, if it is part of the window.
    fn note(&mut self, step: &Step<'_>, text: String) {
        if step.inside {
            self.push(entry(step.event, text));
        }
    }

    fn push(&mut self, entry: DigestEntry) {
        self.entries.push_back(entry);
        if self.entries.len() > KEPT_ENTRIES {
            self.entries.pop_front();
        }
    }

    /// A process that exists, before anything about it is read.
    pub(super) fn of_known(known_state: &KnownProcess) -> Self {
        let is_agent = known_state.kind.as_deref() == Some("agent");
        Self { name: known_state.name.as_deref().map(short_name), is_agent, ..Self::default() }
    }

    /// Takes the state after all events, if nothing about it was read: then it was so all the time.
    pub(super) fn add_known(&mut self, known_state: &KnownProcess) {
        if !self.attention_is_known && known_state.attention {
            let text = "asks for attention since before the events that were read".to_owned();
            self.attention = Some(DigestEntry { text, ..DigestEntry::default() });
        }
        if self.is_known {
            return;
        }
        self.state = match (known_state.status, known_state.agent.as_deref()) {
            (KnownStatus::Created | KnownStatus::Ended, _) => AgentState::Off,
            (KnownStatus::Started, Some("agent.working")) => AgentState::Working,
            (KnownStatus::Started, Some("agent.idle" | "agent.failed")) => AgentState::Idle,
            (KnownStatus::Started, Some("agent.blocked")) => AgentState::Blocked,
            (KnownStatus::Started, Some("agent.limited")) => AgentState::Limited,
            (KnownStatus::Started, _) => AgentState::Unknown,
        };
    }

    /// The window ends.
    pub(super) fn end(&mut self, now: u64, begun: u64) {
        self.add_time(now, Some(begun));
        let lasted = now.saturating_sub(self.since);
        if let Some(waits) = &self.waits
            && let Some(shown) = self.entries.iter_mut().rev().find(|e| e.seq == waits.seq)
        {
            shown.ms = Some(lasted);
        }
    }

    /// Whether it is an agent that ran, or to which something happened.
    pub(super) fn is_in_digest(&self) -> bool {
        let is_told = self.touched || !self.entries.is_empty() || self.times.total_ms() > 0;
        self.is_agent && is_told
    }

    pub(super) fn into_digest(
        self,
        process_id: String,
        name: String,
        messages: Option<&MessagesTo>,
    ) -> AgentDigest {
        let mut entries: Vec<_> = self.entries.into();
        entries.extend(messages.iter().flat_map(|of| &of.open).map(|(_, entry)| entry.clone()));
        entries.sort_by_key(|entry| entry.seq);
        AgentDigest {
            process_id,
            name,
            turns: self.turns,
            time: self.times,
            messages: messages.map(|of| of.counts).unwrap_or_default(),
            sent: self.sent,
            commits: self.commits,
            files_changed: self.most_files.max(self.files.len() as u64),
            files: self.files.into_iter().take(NAMED_FILES).collect(),
            entries,
        }
    }
}
