//! What the server tells whoever follows a project: the whole of it as one value, again whenever
//! something changed. A connection that asks for it says nothing else.

use serde::{Deserialize, Serialize};

use crate::restore::RestoreOffer;

/// The version of these values. A follower says which it speaks.
pub const VERSION: u32 = 1;

/// The request that turns a connection into a follower's; the answer is a [`ProjectSnapshot`].
pub const METHOD: &str = "patterm/follow";

/// The notification that carries the next [`ProjectSnapshot`].
pub const CHANGED: &str = "patterm/changed";

/// The notification that the server was ended for good. One that dies, or is replaced, says nothing.
pub const ENDED: &str = "patterm/ended";

/// The notification by which a follower says what it did about a [`Selection`]: a [`SelectionAnswer`].
pub const SELECTION_ANSWER: &str = "patterm/selection-answer";

/// A call of `select_process`: a view shows the process where no person is typing, else marks it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Its number; they only grow as long as a server runs.
    pub number: u64,
    /// The process to show.
    pub process: String,
    /// It is to be marked and not shown.
    #[serde(default)]
    pub mark_only: bool,
    /// The processes in whose prompt an unfinished text stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<String>,
}

/// What a follower did about a [`Selection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionAnswer {
    /// Its number.
    pub number: u64,
    /// The process is shown; else it is marked.
    pub shown: bool,
}

/// A project as it is at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSnapshot {
    /// The project's folder.
    pub project: String,
    /// Which patterm serves it.
    pub server: String,
    /// The process that was last brought to the front, for followers that do not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<String>,
    /// How often one was brought to the front since this follower began.
    pub selections: u64,
    /// Calls of `select_process` that this follower has not answered, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_select: Vec<Selection>,
    /// The process that somebody last began to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Its processes, oldest first.
    pub processes: Vec<ProcessInfo>,
    /// The last messages between its agents, oldest first.
    pub messages: Vec<MessageInfo>,
    /// Its timers, oldest first.
    pub timers: Vec<TimerInfo>,
    /// What ran when everything was ended and can be restored, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<RestoreOffer>,
    /// The project file.
    #[serde(default)]
    pub project_file: ProjectFileInfo,
    /// What is wrong with the disk that its state is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_problem: Option<String>,
}

/// How the project file stands. What it would run is asked for by who wants to read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileInfo {
    /// Whether it is in effect.
    pub state: ProjectFileState,
    /// The hash of its content, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// Whether the project file is in effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectFileState {
    /// There is none.
    #[default]
    Absent,
    /// It has mistakes, or cannot be read.
    Faulty,
    /// The person has not trusted this content.
    Untrusted,
    /// He has.
    Trusted,
}

/// What a process runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessKind {
    /// A coding agent's CLI.
    Agent,
    /// A program that can be started again.
    #[default]
    Command,
    /// An interactive shell.
    Terminal,
}

/// How a process stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// Being started.
    Starting,
    /// Alive.
    #[default]
    Running,
    /// Ended by itself or by somebody else's signal.
    Exited,
    /// Could not be started.
    Failed,
    /// Ended on request.
    Stopped,
    /// Nobody knows.
    Lost,
}

/// Whether a process does something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivityState {
    /// It does.
    Working,
    /// It waits for its next task.
    Idle,
    /// It waits for a person.
    Blocked,
    /// Nothing tells.
    #[default]
    Unknown,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its id.
    pub id: String,
    /// Its label.
    pub name: String,
    /// What it runs.
    pub kind: ProcessKind,
    /// The preset of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Who started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How it stands.
    pub status: ProcessStatus,
    /// Whether it does something.
    pub activity: ActivityState,
    /// It waits for the end of a limit: until when, or nothing where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<String>,
    /// Why that is said.
    pub reason: String,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why a person should look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// Why its output cannot be kept as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_problem: Option<String>,
    /// It printed something since it was last looked at.
    #[serde(default)]
    pub unread: bool,
    /// How often it was started.
    pub runs: u64,
}

/// A text that was put, or is to be put, into a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInfo {
    /// Its number.
    pub id: u64,
    /// `message`, `first_prompt` or `timer`.
    pub kind: String,
    /// Whose it is: a process id, a tag like `human`, or a timer's id.
    pub from: String,
    /// Whom it is for.
    pub to: String,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// How it begins.
    pub excerpt: String,
    /// `delivered`, `queued` or `stalled`.
    pub state: String,
    /// How that is known.
    pub evidence: String,
}

/// A timer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerInfo {
    /// Its id.
    pub id: String,
    /// `delay`, `idle_any` or `idle_all`.
    pub kind: String,
    /// Its time does not run.
    pub paused: bool,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The process that gets the text.
    pub owner: String,
    /// When it fires at the latest, in milliseconds since 1970; of a paused one, what is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The watched processes that are not idle now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_on: Vec<String>,
    /// How its text begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}
