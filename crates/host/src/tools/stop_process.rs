//! `stop_process`: ends a process and keeps its entry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::{own, signal};
use super::tool::{Call, Effect, Tool};
use crate::process::{Exit, Status};

pub(super) struct StopProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The process.
    process_id: String,
    /// The first signal, by its number; SIGTERM (15) by default.
    signal: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// How it stands now.
    status: Status,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
}

impl Tool for StopProcess {
    const NAME: &'static str = "stop_process";
    const TITLE: &'static str = "Stop a process";
    const DESCRIPTION: &'static str = "Ends a process: a signal to its process group, five seconds \
        of grace, then SIGKILL to everything it ever started. Answers once it has ended. The entry \
        and its output stay; start_process starts it again, close_process removes it.";
    const HELP: &'static str = "A process that does not run is not_running. The program is told by \
        the signal you name; what is left after the grace time is killed whatever it is.";
    const EFFECT: Effect = Effect::Destroys;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = signal(args.signal)?;
        let stopped =
            call.detached(move |host| async move { host.stop(&process, signal).await }).await?;
        Ok(Answer { status: stopped.status, exit: stopped.exit })
    }
}
