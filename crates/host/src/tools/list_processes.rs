//! `list_processes`: all processes of the project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::Summary;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::Kind;

pub(super) struct ListProcesses;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Only this kind.
    kind: Option<Kind>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Oldest first; `parent_id` makes them a tree.
    processes: Vec<Summary>,
}

impl Tool for ListProcesses {
    const NAME: &'static str = "list_processes";
    const TITLE: &'static str = "List processes";
    const DESCRIPTION: &'static str = "Lists all processes with status, activity and ports. Ended \
        ones stay until closed.";
    const HELP: &'static str = "parent_id is the process that started it; top-level processes have \
        none. `activity` is working, idle, blocked (waiting for a person), limited (at a usage limit) or \
        unknown, with the reason.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let wanted = |kind: Kind| args.kind.is_none_or(|wanted| wanted == kind);
        let processes = call.host.panes.processes.all();
        let listed = processes.iter().filter(|process| wanted(process.kind));
        Ok(Answer { processes: listed.map(|process| Summary::of(process, &call.host)).collect() })
    }
}
