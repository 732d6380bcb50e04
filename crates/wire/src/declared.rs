//! Starting and stopping the processes that the project file declares.

use serde::{Deserialize, Serialize};

use crate::follow::ProcessStatus;
use crate::method::Method;

/// `patterm up`: starts declared processes that are not running, in the order of their dependencies.
#[derive(Debug)]
pub enum Up {}

impl Method for Up {
    const NAME: &'static str = "patterm/up";
    type Params = DeclaredNames;
    type Result = DeclaredResult;
}

/// `patterm down`: stops declared processes, each after those that depend on it.
#[derive(Debug)]
pub enum Down {}

impl Method for Down {
    const NAME: &'static str = "patterm/down";
    type Params = DeclaredNames;
    type Result = DeclaredResult;
}

/// `patterm up --wait`: waits until declared processes are ready or have failed.
#[derive(Debug)]
pub enum WaitUntilReady {}

impl Method for WaitUntilReady {
    const NAME: &'static str = "patterm/wait_until_ready";
    type Params = WaitUntilReadyRequest;
    type Result = WaitUntilReadyResult;
}

/// Which processes to wait for, and how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitUntilReadyRequest {
    /// Names of processes and groups, or all processes if there are none.
    #[serde(default)]
    pub names: Vec<String>,
    /// After this many seconds, the state at that moment is returned.
    pub timeout_seconds: f64,
}

/// The processes when the wait ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitUntilReadyResult<P = Readiness> {
    /// The processes, each after those that it depends on.
    pub processes: Vec<P>,
}

/// Whether a process is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Its name in the project file.
    pub name: String,
    /// Its id, if it has an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// Whether it is ready.
    pub state: ReadinessState,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the process whose output says more about the failure: its own, or that of a dependency that failed
    /// first. Only if that process has printed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_by: Option<String>,
}

/// Whether a process is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadinessState {
    /// It is ready, and healthy if that is checked.
    Ready,
    /// It may become ready.
    #[default]
    Pending,
    /// It does not become ready by itself.
    Failed,
}

/// Which processes: names of processes and groups, or all if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredNames {
    /// The names.
    #[serde(default)]
    pub names: Vec<String>,
}

/// The outcome for each process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredResult<P = DeclaredOutcome> {
    /// The processes, in the order in which they were started or stopped.
    pub processes: Vec<P>,
}

/// The outcome for one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredOutcome {
    /// Its name in the project file.
    pub name: String,
    /// Its id, if it has an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// What was done.
    pub outcome: OutcomeKind,
    /// Its status now.
    pub status: ProcessStatus,
    /// The processes that must be ready before it is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was done with a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// It was started.
    Started,
    /// It is started once others are ready.
    Waiting,
    /// It was stopped, or its start was cancelled.
    Stopped,
    /// There was nothing to do.
    #[default]
    Unchanged,
    /// It could not be started or stopped.
    Failed,
}
