//! The tool that describes the whole project.

use serde::{Deserialize, Serialize};

use super::{ProcessSummary, tools};
use crate::follow::ProjectFileState;
use crate::method::Empty;

tools! {
    /// Describes the whole project.
    GetProjectStatus = "get_project_status": Empty => ProjectStatus;
}

/// The project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProjectStatus {
    /// The project file.
    pub project_file: ProjectFileStatus,
    /// The processes, oldest first.
    #[serde(default)]
    pub processes: Vec<ProcessSummary>,
    /// What is wrong with the disk that output and state are stored on.
    #[serde(default)]
    pub disk_problem: Option<String>,
}

/// The project file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFileStatus {
    /// Whether it is in effect.
    #[serde(default)]
    pub state: ProjectFileState,
    /// Where it is, or would be.
    #[serde(default)]
    pub path: String,
    /// Its errors, each with its line.
    #[serde(default)]
    pub faults: Vec<String>,
    /// What it would run if it were trusted.
    #[serde(default)]
    pub would_run: Option<String>,
    /// The lines that differ from the content that was trusted before.
    #[serde(default)]
    pub changes: Option<String>,
    /// The hash of its content.
    #[serde(default)]
    pub hash: Option<String>,
}
