//! Following a project: the server sends the whole project as one value, and again whenever something has
//! changed. Such a connection is used for nothing else.

use serde::{Deserialize, Serialize};

use crate::method::Method;
use crate::restore::RestoreOffer;

/// The version of these values, which a follower sends with its request.
pub const VERSION: u32 = 1;

/// Turns a connection into a follower's.
#[derive(Debug)]
pub enum Follow {}

impl Method for Follow {
    const NAME: &'static str = "patterm/follow";
    type Params = FollowRequest;
    type Result = ProjectSnapshot;
}

/// What a follower supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRequest {
    /// [`VERSION`].
    pub version: u32,
    /// It sends a [`SelectionAnswer`] for each [`Selection`].
    #[serde(default)]
    pub answers: bool,
}

/// The notification with the next [`ProjectSnapshot`].
pub const CHANGED: &str = "patterm/changed";

/// The notification that the server was ended for good. A server that crashes or is replaced sends none.
pub const ENDED: &str = "patterm/ended";

/// A follower's notification with a [`SelectionAnswer`].
pub const SELECTION_ANSWER: &str = "patterm/selection-answer";

/// A call of `select_process`: the follower shows the process, or marks it if the user is typing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Its number, which grows as long as the server runs.
    pub number: u64,
    /// The process to show.
    pub process: String,
    /// Only mark it.
    #[serde(default)]
    pub mark_only: bool,
    /// The processes with a draft in their prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<String>,
}

/// What a follower did with a [`Selection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionAnswer {
    /// Its number.
    pub number: u64,
    /// Whether the process is shown; otherwise it is marked.
    pub shown: bool,
}

/// The state of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSnapshot {
    /// The project's folder.
    pub project: String,
    /// The server's version.
    pub server: String,
    /// The process that was selected last, for followers that send no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<String>,
    /// How many selections there were since this follower connected.
    pub selections: u64,
    /// Calls of `select_process` that this follower has not answered, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_select: Vec<Selection>,
    /// The process that a user opened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Its processes, oldest first.
    pub processes: Vec<ProcessInfo>,
    /// The last messages between its agents, oldest first.
    pub messages: Vec<MessageInfo>,
    /// Its timers, oldest first.
    pub timers: Vec<TimerInfo>,
    /// The processes that can be restored, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<RestoreOffer>,
    /// The project file.
    #[serde(default)]
    pub project_file: ProjectFileInfo,
    /// What is wrong with the disk that its state is stored on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_problem: Option<String>,
}

/// The project file. `get_project_status` says what it would run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileInfo {
    /// Whether it is in effect.
    pub state: ProjectFileState,
    /// The hash of its content, if it could be read.
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
    /// It has errors, or cannot be read.
    Faulty,
    /// The user has not trusted this content.
    Untrusted,
    /// The user has trusted this content.
    Trusted,
}

/// What a process runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessKind {
    /// A coding agent's CLI.
    Agent,
    /// A command.
    #[default]
    Command,
    /// An interactive shell.
    Terminal,
}

impl ProcessKind {
    /// Its name on the wire and for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Command => "command",
            Self::Terminal => "terminal",
        }
    }
}

/// The status of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// It is being started.
    Starting,
    /// It is running.
    #[default]
    Running,
    /// It exited, or was ended by a signal that did not come from patterm.
    Exited,
    /// It could not be started.
    Failed,
    /// It was ended on request.
    Stopped,
    /// It is unknown what became of it.
    Lost,
}

impl ProcessStatus {
    /// Whether it is running or starting.
    #[must_use]
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Starting)
    }

    /// Its name on the wire and for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivityState {
    /// It is working.
    Working,
    /// It waits for its next task.
    Idle,
    /// It waits for a person.
    Blocked,
    /// It is unknown.
    #[default]
    Unknown,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it runs.
    pub kind: ProcessKind,
    /// The preset of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The process that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its status.
    pub status: ProcessStatus,
    /// What it is doing.
    pub activity: ActivityState,
    /// It has reached a usage limit: when that ends, or an empty text if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<String>,
    /// What the activity is based on.
    pub reason: String,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it needs a person's attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// Why its output cannot be stored as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_problem: Option<String>,
    /// It has printed something that nobody has seen.
    #[serde(default)]
    pub unread: bool,
    /// How often it was started.
    pub runs: u64,
}

/// A message, first prompt or timer's text for a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInfo {
    /// Its number.
    pub id: u64,
    /// `message`, `first_prompt` or `timer`.
    pub kind: String,
    /// The sender: a process id, a tag like `human`, or a timer's id.
    pub from: String,
    /// The process that gets it.
    pub to: String,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// Its beginning.
    pub excerpt: String,
    /// `delivered`, `queued` or `stalled`.
    pub state: String,
    /// What the state is based on.
    pub evidence: String,
}

/// A timer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerInfo {
    /// Its id.
    pub id: String,
    /// `delay`, `idle_any` or `idle_all`.
    pub kind: String,
    /// It is paused.
    pub paused: bool,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The process that gets the text.
    pub owner: String,
    /// When it fires at the latest, in milliseconds since 1970; if it is paused, the time left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The watched processes that are not idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_on: Vec<String>,
    /// The beginning of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}
