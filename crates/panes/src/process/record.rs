//! The record of a process, which survives restarts of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use patterm_keeper::Size;
use patterm_screen::TerminalName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run_number::RunNumber;
use crate::offset::Offset;

/// The id of an entry: `p1`, `p2`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProcessId(String);

impl ProcessId {
    /// The id with this number.
    pub fn new(number: u64) -> Self {
        Self(format!("p{number}"))
    }

    /// The id with this text; there may be no such process.
    pub fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether a text has the form of an id or looks like one. A process with such a name could not be
    /// distinguished from the one with that id.
    pub fn is_like(text: &str) -> bool {
        super::name::is_like_id(text)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProcessId {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of program an entry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A coding agent's CLI.
    Agent,
    /// Any other program.
    Command,
    /// An interactive shell.
    Terminal,
}

/// The status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Being started.
    #[default]
    Starting,
    /// Alive.
    Running,
    /// Ended by itself, or by a signal that patterm did not send.
    Exited,
    /// Could not be started.
    Failed,
    /// Ended on request.
    Stopped,
    /// Unknown: the init that watched it was killed.
    Lost,
}

impl Status {
    /// Whether its program may be running.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// How a program ended; one of the two is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl From<patterm_keeper::Exit> for Exit {
    fn from(exit: patterm_keeper::Exit) -> Self {
        match exit {
            patterm_keeper::Exit::Code(code) => Self { code: Some(code), signal: None },
            patterm_keeper::Exit::Signal(signal) => Self { code: None, signal: Some(signal) },
        }
    }
}

/// How to start a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The program and its arguments, as they are executed.
    pub argv: Vec<String>,
    /// Variables that the project file sets. Entries of 0.1 have those of their caller here.
    pub env: BTreeMap<String, String>,
    /// A file with more of them, which is read at each start; those above override it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_file: Option<PathBuf>,
    /// The folder it starts in.
    pub working_dir: PathBuf,
    /// The size of its terminal.
    pub size: Size,
    /// What its terminal calls itself; `None` for patterm's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_name: Option<TerminalName>,
}

/// The additional record of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEntry {
    /// The preset it was started from.
    pub preset: String,
    /// The id of its conversation, chosen by patterm or reported by its CLI.
    pub conversation: String,
    /// Its CLI reported that id, so that the conversation can be resumed with it.
    #[serde(default, rename = "told")]
    pub id_reported: bool,
    /// It has had a turn. CLIs do not store a conversation without any.
    #[serde(default = "yes", rename = "spoken")]
    pub had_turn: bool,
    /// Its current run began without its earlier conversation.
    #[serde(default, rename = "anew", skip_serializing_if = "std::ops::Not::not")]
    pub lost_conversation: bool,
    /// The last of its runs in which it had a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_in_run: Option<RunNumber>,
}

/// The value for entries of versions that did not record this.
fn yes() -> bool {
    true
}

/// A process was running when everything was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// What ended everything.
    pub cause: Cause,
    /// When, in milliseconds since 1970, if a server was running to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// What its dialog asked a person at that time, if a server was running to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// What ends everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A person's `patterm kill`.
    Kill,
    /// A signal that told the server to end, such as at log-out.
    Signal,
    /// The machine was restarted.
    Reboot,
    /// The server and the keeper were killed.
    Lost,
}

/// Why a person should look at a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// The caller's reason.
    pub reason: String,
    /// The caller: the id of a process, or `external`.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// The additional record of a process that the project file declares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredEntry {
    /// Its name in the file; its label may differ.
    pub name: String,
    /// The number of automatic restarts in a row.
    #[serde(default)]
    pub restarts: u32,
    /// It is started once its dependencies are ready; the next server must still do it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wanted: bool,
    /// When its next restart is due, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_at: Option<u64>,
    /// The last run whose end caused a restart: the next server must not count that end again.
    #[serde(default, skip_serializing_if = "RunNumber::is_none")]
    pub restarted_after: RunNumber,
}

/// One entry of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub id: ProcessId,
    /// Its label.
    pub name: String,
    /// What it runs.
    pub kind: Kind,
    /// The process that started it; `None` at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ProcessId>,
    /// It was started over HTTP, or by a caller that may not be a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_a_persons: bool,
    /// How to start it; `None` for one that was never started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// The file with the environment that it was started with; `None` if that is the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// It was started with an environment that is not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub environment_forgotten: bool,
    /// The variables of that environment that its caller set by name: they stay when it gets another one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub set_variables: BTreeSet<String>,
    /// Set for an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentEntry>,
    /// Set if the project file declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredEntry>,
    /// Why a person should look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Attention>,
    /// Its status.
    #[serde(default)]
    pub status: Status,
    /// How its last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The number of its present or last run. The keeper's name of a pane is the id and this number.
    #[serde(default)]
    pub runs: RunNumber,
    /// The offset at which that run began.
    #[serde(default)]
    pub run_offset: Offset,
    /// An offset that its output has not reached. If the end of its log is lost, the log continues there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mark: Option<Offset>,
    /// When it was last started, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// When it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// It was running when everything was ended, and was not started since: a person is asked whether to restore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// It was started again after this, and no person has typed into it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Interruption>,
    /// Its entry was lost and created again from the running program, so its origin is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

impl Process {
    /// An empty entry.
    pub(crate) fn unstarted(id: ProcessId) -> Self {
        Self {
            id,
            name: String::new(),
            kind: Kind::Command,
            parent_id: None,
            not_a_persons: false,
            recipe: None,
            environment: None,
            environment_forgotten: false,
            set_variables: BTreeSet::new(),
            agent: None,
            declared: None,
            attention: None,
            status: Status::Starting,
            exit: None,
            runs: RunNumber::NONE,
            run_offset: Offset::START,
            output_mark: None,
            started_at: None,
            ended_at: None,
            interrupted: None,
            restored: None,
            adopted: false,
        }
    }

    /// The keeper's name of its present pane.
    pub fn pane(&self) -> String {
        format!("{}.{}", self.id, self.runs)
    }

    /// Whether it is an agent that took a turn in its present or last run.
    pub fn took_a_turn(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.turn_in_run == Some(self.runs))
    }

    /// Whether a person has to decide if it is restored.
    pub fn awaits_decision(&self) -> bool {
        self.interrupted.is_some() && !self.status.is_alive()
    }
}
