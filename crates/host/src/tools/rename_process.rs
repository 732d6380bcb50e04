//! `rename_process`: changes the name of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::{check_name, label, own};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct RenameProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// The new name.
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its new name.
    name: String,
}

impl Tool for RenameProcess {
    const NAME: &'static str = "rename_process";
    const TITLE: &'static str = "Rename a process";
    const DESCRIPTION: &'static str = "Renames a process. If the name is taken, a number is added.";
    const HELP: &'static str = "Ids never change; use them in calls instead of names. Only a \
        person may assign the names in [servers.*.agents].";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("rename a process");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let name = label(&args.name)?;
        let preset = process.agent.as_ref().map(|agent| agent.preset.as_str());
        check_name(&call, name, Some(&process.name), preset)?;
        let renamed = call.host.panes.processes.rename(&process.id, name)?;
        let renamed = renamed.ok_or_else(|| call.host.panes.no_such_process(&args.process_id))?;
        Ok(Answer { name: renamed.name })
    }
}
