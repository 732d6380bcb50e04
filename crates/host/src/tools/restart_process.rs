//! `restart_process`: ends a process and starts it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::own;
use super::signal::{SignalArg, signal};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::{Exit, Process, ProcessId, Status};

pub(super) struct RestartProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// Number or name; default TERM.
    signal: Option<SignalArg>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The same id as before.
    process_id: ProcessId,
    /// How it stands now.
    status: Status,
    /// How its last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    /// Why an agent could not go on with its conversation, and began a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    began_anew: Option<String>,
}

impl Tool for RestartProcess {
    const NAME: &'static str = "restart_process";
    const TITLE: &'static str = "Restart a process";
    const DESCRIPTION: &'static str = "Ends a process as stop_process does, if it runs, and \
        starts it again in the same entry.";
    const HELP: &'static str = "Its id, name and output offsets stay the same.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("restart a process");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = signal(args.signal.as_ref())?.number();
        let work = call.detached(move |host| async move {
            host.agents.can_restart(&process)?;
            let ended = match process.status.is_alive() {
                true => host.lifecycle.stop(&process, signal).await?,
                false => process,
            };
            let (started, began_anew) = host.lifecycle.start(&ended).await?;
            let Process { id, status, .. } = started;
            Ok(Answer { process_id: id, status, exit: ended.exit, began_anew })
        });
        work.await
    }
}
