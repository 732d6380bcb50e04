//! `start_process`: starts a process that ended again, in its own entry.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Started, own};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct StartProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

impl Tool for StartProcess {
    const NAME: &'static str = "start_process";
    const TITLE: &'static str = "Start a process again";
    const DESCRIPTION: &'static str = "Starts an ended process again in the same entry, on a \
        fresh terminal.";
    const HELP: &'static str = "One that runs is already_running: restart_process ends it first. \
        Output offsets go on. An agent is started again only where its preset says how to resume \
        its conversation; otherwise the answer is unavailable. Where its CLI never reported the \
        id of its conversation it begins a new one, and began_anew says so.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("start an exited or stopped process again");
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        let process = own(&call, &args.process_id)?;
        let work = call.detached(|host| async move {
            host.agents.can_resume(&process)?;
            Ok(host.lifecycle.start(&process).await?)
        });
        let (process, began_anew) = work.await?;
        Ok(Started { began_anew, ..process.into() })
    }
}
