//! Tools about processes: listing, starting, ending.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::tools;
use crate::follow::{ProcessKind, ProcessStatus};
use crate::method::Empty;
use crate::reason;

tools! {
    /// Lists the processes.
    ListProcesses = "list_processes": Empty => ProcessList;
    /// Describes one process.
    GetProcessStatus = "get_process_status": ProcessRef => ProcessSummary;
    /// Starts a command or a terminal.
    SpawnProcess = "spawn_process": SpawnProcessArgs => StartedProcess;
    /// Starts an agent.
    SpawnAgent = "spawn_agent": SpawnAgentArgs => StartedProcess;
    /// Ends a process and starts it again.
    RestartProcess = "restart_process": ProcessRef => StartedProcess;
    /// Starts a process that has ended.
    StartProcess = "start_process": ProcessRef => StartedProcess;
    /// Ends a process and keeps its entry.
    StopProcess = "stop_process": StopArgs => StoppedProcess;
    /// Ends a process and removes it.
    CloseProcess = "close_process": ProcessRef => ClosedProcesses;
    /// Renames a process.
    RenameProcess = "rename_process": RenameArgs => RenamedProcess;
    /// Lists the ports that a process serves on.
    GetProcessPorts = "get_process_ports": ProcessRef => PortList;
}

/// The process that a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Its id.
    pub process_id: String,
}

/// All processes of the project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessList<P = ProcessSummary> {
    /// The processes, oldest first.
    pub processes: Vec<P>,
}

/// A process in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSummary {
    /// Its id.
    pub process_id: String,
    /// Its name.
    pub name: String,
    /// What it runs.
    pub kind: ProcessKind,
    /// The process that started it.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// Its status.
    pub status: ProcessStatus,
    /// What it is doing.
    #[serde(default)]
    pub activity: Activity,
    /// How it ended.
    #[serde(default)]
    pub exit: Option<ExitInfo>,
    /// Why it needs a person's attention.
    #[serde(default)]
    pub attention: Option<AttentionInfo>,
    /// An agent was interrupted when everything was ended: how, and what waits for it.
    #[serde(default)]
    pub interrupted: Option<String>,
    /// Why its output cannot be stored as it should be.
    #[serde(default)]
    pub output_problem: Option<String>,
    /// It was running when everything was ended, and can be restored.
    #[serde(default, rename = "can_be_brought_back")]
    pub can_be_restored: bool,
    /// The project file declares it.
    #[serde(default)]
    pub declared: bool,
    /// How often in a row it was restarted automatically.
    #[serde(default)]
    pub restarts: Option<u32>,
    /// Seconds until it is restarted.
    #[serde(default)]
    pub next_restart_in: Option<f64>,
    /// The processes that must be ready before it is started.
    #[serde(default)]
    pub waiting_for: Vec<String>,
    /// `healthy` or `unhealthy`, if it is checked.
    #[serde(default)]
    pub health: Option<String>,
    /// Why it is not started, not restarted, not ready or not healthy.
    #[serde(default)]
    pub problem: Option<String>,
    /// Why a declared process is not running.
    #[serde(default)]
    pub why_not_running: Option<String>,
    /// It runs as an earlier version of the project file declared it.
    #[serde(default)]
    pub outdated: bool,
}

impl ProcessSummary {
    /// Whether it is running or starting.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.status.is_alive()
    }

    /// Why it needs a person: what it was asked for, or what its dialog asks.
    #[must_use]
    pub fn needs(&self) -> Option<String> {
        let Activity { state, reason, asks } = &self.activity;
        match (&self.attention, state.as_str()) {
            (Some(attention), _) => Some(attention.reason.clone()),
            (None, "blocked") => Some(match (asks, reason::plain(reason)) {
                (Some(asks), _) => asks.clone(),
                (None, "") => reason::WAITS.to_owned(),
                (None, reason) => reason.to_owned(),
            }),
            (None, "limited") => Some(match reason::plain(reason) {
                "" => "limited".to_owned(),
                reason => format!("limited: {reason}"),
            }),
            (None, _) => None,
        }
    }
}

/// What a process is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// `working`, `idle`, `blocked`, `limited` or `unknown`.
    #[serde(default)]
    pub state: String,
    /// What that is based on.
    #[serde(default)]
    pub reason: String,
    /// What a person is asked, with the options there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitInfo {
    /// Its exit code.
    #[serde(default)]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
}

/// A request for a person's attention.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionInfo {
    /// Why.
    pub reason: String,
}

/// What to start. Without `argv` and `kind` it is a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnProcessArgs {
    /// A process that the project file declares, instead of `argv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// `command` or `terminal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProcessKind>,
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder it starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
}

/// Which agent to start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnAgentArgs {
    /// The preset.
    pub agent: String,
    /// Its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_instructions: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of a process in whose folder it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_of: Option<String>,
}

/// A process that was started, or will be as soon as others are ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedProcess {
    /// Its id.
    pub process_id: String,
    /// Its status now.
    #[serde(default)]
    pub status: ProcessStatus,
    /// The processes that must be ready before it is started.
    #[serde(default)]
    pub waiting_for: Vec<String>,
    /// Why an agent could not resume its conversation.
    #[serde(default, rename = "began_anew")]
    pub new_conversation: Option<String>,
    /// Why its environment is not the one it was started with before.
    #[serde(default)]
    pub environment_changed: Option<String>,
}

/// Which process to stop, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopArgs {
    /// Its id.
    pub process_id: String,
    /// A signal's number or name; TERM by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// A process that got a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedProcess {
    /// Its status now.
    pub status: ProcessStatus,
}

/// Processes that were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedProcesses {
    /// Their ids.
    pub closed: Vec<String>,
}

/// A process's new name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameArgs {
    /// Its id.
    pub process_id: String,
    /// The new name.
    pub name: String,
}

/// A process that was renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenamedProcess {
    /// Its name now; a number is added to a name that is taken.
    pub name: String,
}

/// The ports of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortList {
    /// The ports, those that were printed first.
    pub ports: Vec<PortInfo>,
}

/// A port that a process serves on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortInfo {
    /// The address as it was printed.
    #[serde(default)]
    pub url: Option<String>,
    /// The port.
    pub port: u16,
    /// Whether the process listens on it now.
    #[serde(default)]
    pub listening: bool,
}
