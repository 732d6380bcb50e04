//! `list_processes`: all processes of the project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::Summary;
use super::tool::{Call, Effect, Tool};
use crate::process::Kind;

pub(super) struct ListProcesses;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Only those of one kind.
    kind: Option<Kind>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The processes, oldest first; `parent_id` makes a tree of them.
    processes: Vec<Summary>,
}

impl Tool for ListProcesses {
    const NAME: &'static str = "list_processes";
    const TITLE: &'static str = "List processes";
    const DESCRIPTION: &'static str = "Lists the project's processes with id, name, kind, parent, \
        status, activity, exit and ports. Ended ones are listed until they are closed.";
    const HELP: &'static str = "Whoever stands below whom is in parent_id; what has none stands at \
        the top.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let wanted = |kind: Kind| args.kind.is_none_or(|wanted| wanted == kind);
        let processes = call.host.processes.all();
        let listed = processes.iter().filter(|process| wanted(process.kind));
        Ok(Answer { processes: listed.map(|process| Summary::of(process, &call.host)).collect() })
    }
}
