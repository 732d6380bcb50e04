//! `signal_process`: sends a signal and does nothing else.

use patterm_events::About;
use patterm_wire::events::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::own;
use super::signal::{SignalArg, send, signal};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::Status;

pub(super) struct SignalProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// Number or name: "HUP", "USR1", …
    signal: SignalArg,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its status when the signal was sent.
    status: Status,
}

impl Tool for SignalProcess {
    const NAME: &'static str = "signal_process";
    const TITLE: &'static str = "Signal a process";
    const DESCRIPTION: &'static str = "Only sends a signal to a process's group, for example HUP \
        to reload. To end it: stop_process.";
    const HELP: &'static str = "It does not wait for the effect of the signal, and kills nothing \
        afterwards. Fails with not_running if the process is not running.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("send SIGHUP or SIGUSR1 to reload");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = signal(&args.signal)?;
        let number = signal.number();
        let status = send(&process, signal, &call.host)?;
        let about = About::process(&process.id).run(process.runs.get());
        call.host.events.record(about, Fact::ProcessSignalled { signal: number });
        Ok(Answer { status })
    }
}
