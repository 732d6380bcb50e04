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
    /// It shows no panes, so `select_process` does not concern it. A 0.1 server ignores this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
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
    /// What is wrong with the user's `config.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_problem: Option<String>,
}

/// The project file. `get_project_status` says what it would run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileInfo {
    /// Whether it is in effect.
    pub state: ProjectFileState,
    /// The hash of its content, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// It is not trusted, but other content was before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// Whether the project file is in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// What a process runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessKind {
    /// A coding agent's CLI.
    Agent,
    /// A command.
    #[default]
    Command,
    /// An interactive shell.
    Terminal,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

impl ProcessKind {
    /// Its name on the wire and for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent => "agent",
            Self::Command => "command",
            Self::Terminal => "terminal",
            Self::Other(name) => name,
        }
    }
}

/// The status of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Its outcome is unknown.
    Lost,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

impl ProcessStatus {
    /// Whether it is running or starting. With an unknown status it counts as alive: the server refuses what
    /// cannot be done with it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Other(_) => true,
            Self::Exited | Self::Failed | Self::Stopped | Self::Lost => false,
        }
    }

    /// Its name on the wire and for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
            Self::Other(name) => name,
        }
    }
}

/// What a process is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// The health of a process, according to its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// It is healthy.
    Healthy,
    /// It is not.
    Unhealthy,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// A dialog of an agent's CLI, which a person can answer with [`crate::requests::AnswerDialog`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogInfo {
    /// Distinguishes it from every other dialog of this process.
    pub version: String,
    /// What it asks.
    pub question: String,
    /// What it offers.
    pub options: Vec<DialogOption>,
}

/// An option of a dialog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogOption {
    /// Its text, with its number if the dialog shows one.
    pub label: String,
    /// Whether patterm knows the keys that choose it.
    #[serde(default)]
    pub answerable: bool,
}

impl DialogInfo {
    /// Whether any of its options can be chosen.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        self.options.iter().any(|option| option.answerable)
    }
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
    /// The dialog that waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<DialogInfo>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it needs a person's attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// An agent was interrupted when everything was ended: how, and what waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// Why its output cannot be stored as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_problem: Option<String>,
    /// The project file declares it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
    /// The processes that must be ready before a declared process is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,
    /// Why a declared process is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_running: Option<String>,
    /// The health of a declared process, if it is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthState>,
    /// Why a declared process that is running is not ready or not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// It has printed something that nobody has seen.
    #[serde(default)]
    pub unread: bool,
    /// Its bell rang, and nobody has seen the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rang: bool,
    /// Its last notification (OSC 9 or 777).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<NotificationInfo>,
    /// How often it was started.
    pub runs: u64,
    /// The automatic restarts in a row of a declared process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
}

/// A notification of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationInfo {
    /// How many there were in this run.
    pub number: u64,
    /// The beginning of its text, without control characters.
    pub text: String,
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

/// What a timer waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A time.
    #[default]
    Delay,
    /// One of several processes to become idle.
    IdleAny,
    /// All of several processes to become idle.
    IdleAll,
    /// All of several processes to end.
    Exit,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// A timer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerInfo {
    /// Its id.
    pub id: String,
    /// What it waits for.
    pub kind: TimerKind,
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
    /// The watched processes that it still waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_on: Vec<String>,
    /// The beginning of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(word: &str) -> T {
        serde_json::from_value(word.into()).unwrap()
    }

    #[test]
    fn values_of_newer_servers_are_kept_as_they_are() {
        let other = "frozen".to_owned();
        assert_eq!(read::<ProcessStatus>("frozen"), ProcessStatus::Other(other.clone()));
        assert_eq!(read::<ProcessKind>("frozen").name(), "frozen");
        assert_eq!(read::<ActivityState>("frozen"), ActivityState::Other(other.clone()));
        assert_eq!(read::<ProjectFileState>("frozen"), ProjectFileState::Other(other.clone()));
        assert_eq!(read::<HealthState>("frozen"), HealthState::Other(other.clone()));
        assert_eq!(read::<HealthState>("unhealthy"), HealthState::Unhealthy);
        assert_eq!(read::<TimerKind>("frozen"), TimerKind::Other(other.clone()));
        assert_eq!(serde_json::to_value(TimerKind::Other(other)).unwrap(), "frozen");
        assert_eq!(read::<ProcessStatus>("lost"), ProcessStatus::Lost);
        assert_eq!(read::<TimerKind>("idle_any"), TimerKind::IdleAny);
        assert!(serde_json::from_str::<ProcessStatus>("7").is_err(), "not even a word");
    }
}
