//! `stop_process`: ends a process and keeps its entry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::own;
use super::signal::{SignalArg, send, signal};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::{Exit, Status};

pub(super) struct StopProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// Number or name; default TERM.
    signal: Option<SignalArg>,
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
    const DESCRIPTION: &'static str = "Ends a process and keeps its entry: the signal, a grace \
        time of five seconds, then SIGKILL to all it started. Returns once it has ended.";
    const HELP: &'static str = "A process that does not run is not_running. TERM, INT, QUIT, KILL \
        and HUP are meant to end a program: what is left after the grace time is killed. Any other \
        signal is only sent, as signal_process does, and the process goes on. start_process starts \
        it again, close_process removes it.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("stop, kill or end a process, keep its output");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = signal(args.signal.as_ref())?;
        if !signal.is_meant_to_end() {
            return Ok(Answer { status: send(&process, signal, &call.host)?, exit: None });
        }
        let stop = move |host: std::sync::Arc<crate::host::Host>| async move {
            Ok(host.lifecycle.stop(&process, signal.number()).await?)
        };
        let stopped = call.detached(stop).await?;
        Ok(Answer { status: stopped.status, exit: stopped.exit })
    }
}
