//! `get_project_status`: the whole project in one call.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::messages::{self, MessageAnswer};
use super::process::Summary;
use super::scratchpad::{PadSummary, with_pads};
use super::timer;
use super::tool::{Call, Effect, Tool};
use super::whoami::CallerAnswer;
use crate::pads::Pads;

pub(super) struct GetProjectStatus;

/// Nothing is asked.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The project's folder.
    project: PathBuf,
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
}

impl Tool for GetProjectStatus {
    const NAME: &'static str = "get_project_status";
    const TITLE: &'static str = "Status of the project";
    const DESCRIPTION: &'static str = "The project in one call: who you are, all processes, \
        scratchpads and timers. Good for a first look, or after you were away.";
    const HELP: &'static str = "More about one process is in get_process_status.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        let processes = call.host.processes.all();
        Ok(Answer {
            project: call.host.project.root().to_owned(),
            caller: CallerAnswer::of(&call),
            processes: processes.iter().map(|p| Summary::of(p, &call.host)).collect(),
            messages: messages::last(&call.host.deliveries),
            timers: timer::own_timers(&call),
            scratchpads: PadSummary::all(with_pads(&call, Pads::list).await?),
        })
    }
}
