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

/// Nothing is asked.
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
    /// The last messages, first prompts and timers' texts, with what became of them.
    messages: Vec<MessageAnswer>,
    /// Your timers.
    timers: Vec<timer::Summary>,
    /// Its scratchpads.
    scratchpads: Vec<PadSummary>,
    /// What is wrong with the disk that output and state are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_problem: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ProjectFileAnswer {
    /// `absent`, `faulty`, `untrusted` or `trusted`.
    state: &'static str,
    /// Where it is, or would be.
    path: PathBuf,
    /// The processes that it declares, of those that are in effect.
    processes: Vec<String>,
    /// What is wrong with it, each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    /// What a person can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'static str>,
    /// Where it is not trusted: what it would run, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_run: Option<String>,
    /// The hash of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

impl ProjectFileAnswer {
    fn of(host: &Host) -> Self {
        let file = host.declared.effect().unwrap_or_default();
        let standing = host.declared.file_status();
        let mut answer = Self {
            state: standing.name(),
            path: host.declared.path(),
            processes: file.processes.keys().cloned().collect(),
            faults: Vec::new(),
            advice: None,
            would_run: None,
            hash: None,
        };
        match standing {
            FileStatus::Absent => {}
            FileStatus::Faulty { faults, hash } => {
                (answer.faults, answer.hash) = (faults, hash);
                answer.advice = Some("mend it; nothing of it takes effect before that");
            }
            FileStatus::Untrusted { hash, would } => {
                (answer.would_run, answer.hash) = (Some(would), Some(hash));
                answer.advice = Some(
                    "a person looks at it with `patterm trust`; nothing of it takes effect before \
                     that",
                );
            }
            FileStatus::Trusted { hash } => answer.hash = Some(hash),
        }
        answer
    }
}

impl Tool for GetProjectStatus {
    const NAME: &'static str = "get_project_status";
    const TITLE: &'static str = "Status of the project";
    const DESCRIPTION: &'static str = "The whole project in one call: you, processes, last \
        messages with receipts, timers, scratchpads, patterm.toml.";
    const HELP: &'static str = "More about one process is in get_process_status.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading =
        Loading::OnSearch("overview: processes, messages, timers, scratchpads");
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
