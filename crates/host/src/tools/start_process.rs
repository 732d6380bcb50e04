//! `start_process`: starts an ended process again, in its own entry.

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
    const DESCRIPTION: &'static str = "Starts an ended process again in the same entry.";
    const HELP: &'static str = "Fails with already_running if it is running: use restart_process. Output \
        offsets continue. An agent is started again only if its preset can resume its \
        conversation; otherwise you get unavailable. If its CLI never reported the id of its \
        conversation, it begins a new one, and began_anew says so.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("start an exited or stopped process again");
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        let process = own(&call, &args.process_id)?;
        // A declared process is started as `spawn_process` starts it; others keep the environment they had.
        let passed = call.passed.as_ref().filter(|_| process.declared.is_some());
        let (passed, is_person) = (passed.cloned(), call.caller.is_human_origin());
        let work = call.detached(move |host| async move {
            host.agents.can_resume(&process)?;
            let process = match passed {
                Some(passed) => host.declared.set_environment(&process, passed.given(is_person))?,
                None => process,
            };
            let environment_changed = host.panes.environments.why_changed(&process);
            let (process, began_anew) = host.lifecycle.start(&process).await?;
            Ok(Started { began_anew, environment_changed, ..Started::of(process, &host) })
        });
        work.await
    }
}
