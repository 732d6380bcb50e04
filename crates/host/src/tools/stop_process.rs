//! `stop_process`: ends a process and keeps its entry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::own;
use super::signal::{Signal, SignalArg, send, signal};
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
    /// Its status now.
    status: Status,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
}

impl Tool for StopProcess {
    const NAME: &'static str = "stop_process";
    const TITLE: &'static str = "Stop a process";
    const DESCRIPTION: &'static str = "Ends a process with all it started, and keeps its entry. \
        Returns once it has ended.";
    const HELP: &'static str = "Fails with not_running if the process is not running. TERM, INT, QUIT, KILL \
        and HUP ask a program to end: what is left after the grace period is killed. Any other \
        signal is only sent, as by signal_process, and the process continues. start_process starts \
        it again, close_process removes it. Without a signal, a process that patterm.toml declares is stopped \
        as its `stop` says: with another signal, another grace period or a command.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("stop, kill or end a process");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = args.signal.as_ref().map(signal).transpose()?;
        if let Some(signal) = signal.filter(|signal| !signal.is_meant_to_end()) {
            return Ok(Answer { status: send(&process, signal, &call.host)?, exit: None });
        }
        let stop = move |host: std::sync::Arc<crate::host::Host>| async move {
            Ok(host.lifecycle.stop(&process, signal.map(Signal::number)).await?)
        };
        let stopped = call.detached(stop).await?;
        Ok(Answer { status: stopped.status, exit: stopped.exit })
    }
}
