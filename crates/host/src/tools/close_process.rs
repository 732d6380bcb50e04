//! `close_process`: ends a process and everything it started, and removes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::process::own;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::ProcessId;

pub(super) struct CloseProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// In the order in which they were closed.
    closed: Vec<ProcessId>,
}

impl Tool for CloseProcess {
    const NAME: &'static str = "close_process";
    const TITLE: &'static str = "Close a process";
    const DESCRIPTION: &'static str = "Kills a process and all it started, and removes it, its \
        timers, its output and the processes below it. Close what you spawned. To keep the \
        output: stop_process.";
    const HELP: &'static str = "Its output cannot be read afterwards, and its id is never reused.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        if call.caller.process().is_some() && process.declared.is_some() {
            let message = format!(
                "{} ({}) is declared in the project file, so only a person may close it; use stop_process \
                 to end it",
                process.id, process.name
            );
            return Err(ToolError::new(ErrorKind::NotOwner, message));
        }
        let closed =
            call.detached(|host| async move { Ok(host.lifecycle.close(&process).await?) }).await?;
        Ok(Answer { closed })
    }
}
