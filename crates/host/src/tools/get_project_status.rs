//! `get_project_status`: the whole project in one call.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::messages::{self, MessageAnswer};
use super::process::Summary;
use super::scratchpad::{PadSummary, with_pads};
use super::timer;
use super::tool::{Call, Effect, Loading, Tool};
use super::whoami::CallerAnswer;
use crate::host::Host;
use patterm_pads::Pads;
use patterm_project::declared::FileStatus;

pub(super) struct GetProjectStatus;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The project's folder.
    project: PathBuf,
    /// The project file, patterm.toml.
    project_file: ProjectFileAnswer,
    /// Who you are.
    caller: CallerAnswer,
    /// Its processes.
    processes: Vec<Summary>,
    /// The last messages, first prompts and timers' texts, with their receipts.
    messages: Vec<MessageAnswer>,
    /// Your timers.
    timers: Vec<timer::Summary>,
    /// Its scratchpads.
    scratchpads: Vec<PadSummary>,
    /// The problem with the disk that stores output and state, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_problem: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ProjectFileAnswer {
    /// `absent`, `faulty`, `untrusted` or `trusted`.
    state: &'static str,
    /// Its path, even if it does not exist.
    path: PathBuf,
    /// The processes that it declares, if it is in effect.
    processes: Vec<String>,
    /// Its errors, with their positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    /// What a person can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'static str>,
    /// If it is not trusted: what it would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_run: Option<String>,
    /// If other content was trusted before: the lines that differ from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<String>,
    /// The hash of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

impl ProjectFileAnswer {
    fn of(host: &Host) -> Self {
        let file = host.declared.effect().unwrap_or_default();
        let status = host.declared.file_status();
        let mut answer = Self {
            state: status.name(),
            path: host.declared.path(),
            processes: file.processes.keys().cloned().collect(),
            faults: Vec::new(),
            advice: None,
            would_run: None,
            changes: None,
            hash: None,
        };
        match status {
            FileStatus::Absent => {}
            FileStatus::Faulty { faults, hash } => {
                (answer.faults, answer.hash) = (faults, hash);
                answer.advice = Some("fix it; until then it has no effect");
            }
            FileStatus::Untrusted { hash, would, changes } => {
                answer.advice = Some(match changes {
                    None => {
                        "a person must review it with `patterm trust`; until then it has no effect"
                    }
                    Some(_) => {
                        "a person must review the changes with `patterm trust`; until then they have no effect"
                    }
                });
                (answer.would_run, answer.hash) = (Some(would), Some(hash));
                answer.changes = changes;
            }
            FileStatus::Trusted { hash } => answer.hash = Some(hash),
        }
        answer
    }
}

impl Tool for GetProjectStatus {
    const NAME: &'static str = "get_project_status";
    const TITLE: &'static str = "Status of the project";
    const DESCRIPTION: &'static str =
        "The project in one call: you, processes, messages, timers, scratchpads.";
    const HELP: &'static str = "Use get_process_status for details of one process.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("overview of the project");
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        let host = call.host.clone();
        call.blocking(move || host.declared.read_project_file()).await?;
        let processes = call.host.panes.processes.all();
        Ok(Answer {
            project: call.host.project.root().to_owned(),
            project_file: ProjectFileAnswer::of(&call.host),
            caller: CallerAnswer::of(&call),
            disk_problem: call.host.panes.disk_problem(),
            processes: processes.iter().map(|p| Summary::of(p, &call.host)).collect(),
            messages: messages::last(&call.host.agents.deliveries),
            timers: timer::own_timers(&call),
            scratchpads: PadSummary::all(with_pads(&call, Pads::list).await?),
        })
    }
}
