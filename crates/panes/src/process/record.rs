//! What is known of a process and kept across restarts of the server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use patterm_keeper::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// A program that can be started again.
    Command,
    /// An interactive shell.
    Terminal,
}

/// How a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Being started.
    #[default]
    Starting,
    /// Alive.
    Running,
    /// Ended by itself or by somebody else's signal.
    Exited,
    /// Could not be started.
    Failed,
    /// Ended on request.
    Stopped,
    /// Nobody knows: what watched over it was killed.
    Lost,
}

impl Status {
    /// Whether there may be something alive.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// How a program ended: one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// How to start a process, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The program and its arguments, as they are executed.
    pub argv: Vec<String>,
    /// What was asked for beyond the server's own environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub working_dir: PathBuf,
    /// The size of its terminal.
    pub size: Size,
}

/// What is kept of an agent beside what is kept of every process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEntry {
    /// The preset it was started from.
    pub preset: String,
    /// The id of its conversation: one that we chose, or one that its CLI told.
    pub conversation: String,
    /// Its CLI told that id: it can be taken up again under it.
    #[serde(default)]
    pub told: bool,
    /// It took a turn. CLIs keep no conversation in which nothing was said.
    #[serde(default = "yes")]
    pub spoken: bool,
    /// Its present run began without the conversation that it had before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// The last of its runs in which it took a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_in_run: Option<u64>,
}

/// What is assumed of entries that were written before it was noted.
fn yes() -> bool {
    true
}

/// A process ran when everything was ended, and was not started since: a person is asked whether to
/// bring it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// What ended everything.
    pub cause: Cause,
    /// When, in milliseconds since 1970, where somebody was there to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// What ends everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A person's `patterm kill`.
    Kill,
    /// A signal that told the server to end, as at a log-out.
    Signal,
    /// The machine was started again.
    Reboot,
    /// Server and keeper were killed.
    Lost,
}

/// Why a person should look at a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// In the words of whoever asked.
    pub reason: String,
    /// Who asked: the id of a process, or `external`.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// What is kept of a process that the project file declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredEntry {
    /// Its name there; its label may be another.
    pub name: String,
    /// How often in a row it was started again by itself.
    #[serde(default)]
    pub restarts: u32,
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
    /// Who started it; `None` at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ProcessId>,
    /// It was started over HTTP, or by a caller that may not be a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_a_persons: bool,
    /// How to start it; `None` for one that was never started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// More about an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentEntry>,
    /// More about one that the project file declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredEntry>,
    /// Why a person should look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Attention>,
    /// How it stands.
    #[serde(default)]
    pub status: Status,
    /// How it ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// How often it was started: a pane's name at the keeper is the id and this.
    #[serde(default)]
    pub runs: u64,
    /// Where in its output the present run began.
    #[serde(default)]
    pub run_offset: u64,
    /// An offset that its output has not reached: where its log goes on if the end of that is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mark: Option<u64>,
    /// When it was last started, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// When it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// It ran when everything was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// Its entry was lost and made again from what runs: nobody knows who started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

impl Process {
    /// An entry without a name of which nothing is known yet.
    pub(crate) fn unstarted(id: ProcessId) -> Self {
        Self {
            id,
            name: String::new(),
            kind: Kind::Command,
            parent_id: None,
            not_a_persons: false,
            recipe: None,
            agent: None,
            declared: None,
            attention: None,
            status: Status::Starting,
            exit: None,
            runs: 0,
            run_offset: 0,
            output_mark: None,
            started_at: None,
            ended_at: None,
            interrupted: None,
            adopted: false,
        }
    }

    /// The name of its present pane at the keeper.
    pub fn pane(&self) -> String {
        format!("{}.{}", self.id, self.runs)
    }

    /// Whether it is an agent that took a turn in its present or last run.
    pub fn took_a_turn(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.turn_in_run == Some(self.runs))
    }

    /// Whether a person is to decide if it is restored.
    pub fn awaits_decision(&self) -> bool {
        self.interrupted.is_some() && !self.status.is_alive()
    }
}
