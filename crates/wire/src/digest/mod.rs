//! The digest: what happened in a stretch of events, what needs a person first. It is built from events alone; what
//! they do not say is reported as unknown.

mod lines;
mod request;

use serde::{Deserialize, Serialize};

pub use lines::{DigestLine, LineKind, LineTarget, duration_text};
pub use request::{DigestRequest, LookedRequest, NoteLooked, ReadDigest, Viewer};

/// What happened between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Digest {
    /// The number of its first event.
    pub since: u64,
    /// Where the next digest continues.
    pub next: u64,
    /// When it begins; `None` if no event of that time is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// When it ends.
    pub until: String,
    /// Events of this time, at most, that are no longer kept, or are damaged.
    pub missing: u64,
    /// Events of this time, at most, that were lost when the machine stopped or its disk was full.
    pub lost: u64,
    /// What needs a person now, most urgent first.
    pub needs_you: Vec<DigestEntry>,
    /// The agents that ran in this time.
    pub agents: Vec<AgentDigest>,
    /// Other processes that began, ended or restarted.
    pub processes: Vec<DigestEntry>,
    /// Ports that were opened or closed.
    pub ports: Vec<DigestEntry>,
    /// Scratchpads that were changed.
    pub scratchpads: Vec<DigestEntry>,
    /// Shared MCP servers that started, failed or stopped.
    pub servers: Vec<DigestEntry>,
    /// The project file, worktrees, commits of unknown processes, and the server itself.
    pub project: Vec<DigestEntry>,
    /// Entries that had no room.
    pub left_out: u64,
}

impl Digest {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let sections =
            [&self.processes, &self.ports, &self.scratchpads, &self.servers, &self.project];
        self.needs_you.is_empty()
            && self.missing == 0
            && self.lost == 0
            && sections.iter().all(|section| section.is_empty())
            && self.agents.iter().all(AgentDigest::is_quiet)
    }
}

/// One thing that happened, and its place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DigestEntry {
    /// The number of its event, or of the last one of several.
    pub seq: u64,
    /// The time of that event.
    pub time: String,
    /// The type of that event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The process that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// The run of that process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The place in the output of that process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What happened.
    pub text: String,
    /// How long it has lasted, or lasted, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// What an agent did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentDigest {
    /// The id of its process.
    pub process_id: String,
    /// Its label.
    pub name: String,
    /// The turns that ended.
    pub turns: u64,
    /// How long it was in each state.
    pub time: StateTimes,
    /// Messages to it, by what became of them.
    pub messages: MessageCounts,
    /// Messages that it sent.
    pub sent: u64,
    /// Commits.
    pub commits: u64,
    /// The number of files that these changed, at least: an event may name only some of many.
    pub files_changed: u64,
    /// The first of these files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What happened to it, oldest first.
    pub entries: Vec<DigestEntry>,
}

impl AgentDigest {
    /// Whether it did nothing.
    fn is_quiet(&self) -> bool {
        self.turns == 0
            && self.time.working_ms == 0
            && self.entries.is_empty()
            && self.messages == MessageCounts::default()
            && self.sent == 0
            && self.commits == 0
    }
}

/// How long an agent was in each state, in milliseconds. The rest of the time it did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateTimes {
    /// It worked.
    pub working_ms: u64,
    /// It waited for its next task.
    pub idle_ms: u64,
    /// It waited for a person.
    pub blocked_ms: u64,
    /// It had reached a usage limit.
    pub limited_ms: u64,
    /// It ran, but the events do not say what it did.
    pub unknown_ms: u64,
}

impl StateTimes {
    /// All of it.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        let Self { working_ms, idle_ms, blocked_ms, limited_ms, unknown_ms } = self;
        working_ms + idle_ms + blocked_ms + limited_ms + unknown_ms
    }
}

/// Messages by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageCounts {
    /// The CLI accepted them.
    pub delivered: u64,
    /// They wait.
    pub waiting: u64,
    /// They were typed, but nothing shows that the CLI accepted them.
    pub stalled: u64,
    /// They will not be delivered.
    pub dropped: u64,
}

impl MessageCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.delivered + self.waiting + self.stalled + self.dropped
    }
}
