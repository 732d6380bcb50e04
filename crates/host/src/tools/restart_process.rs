//! `restart_process`: ends a process and starts it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::process::{own, waiting_for};
use super::signal::{Signal, SignalArg, signal};
use super::tool::{Call, Effect, Loading, Tool};
use crate::lifecycle::LifecycleError;
use patterm_panes::process::{Exit, Process, ProcessId, Status};
use patterm_panes::{PaneError, is_of_agents};

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
    /// Its status now.
    status: Status,
    /// The processes that must be ready before it is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for: Vec<String>,
    /// How its last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    /// Why an agent could not resume its conversation, and began a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    began_anew: Option<String>,
    /// Why its environment is not the one it was started with before.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_changed: Option<String>,
}

impl Tool for RestartProcess {
    const NAME: &'static str = "restart_process";
    const TITLE: &'static str = "Restart a process";
    const DESCRIPTION: &'static str = "Ends a process as stop_process does, and starts it again in \
        the same entry.";
    const HELP: &'static str = "Its id, name and output offsets stay the same.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("restart a process");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let signal = args.signal.as_ref().map(signal).transpose()?.map(Signal::number);
        let environment = call.passed.as_ref().filter(|passed| passed.restarts);
        let environment = environment.map(|passed| passed.variables.clone());
        if environment.is_some() && !may_set_environment(&call, &process) {
            let message = format!(
                "{} ({}) is declared or was started by a person, so only a person may change its environment; \
                 restart it without changing the environment",
                process.id, process.name
            );
            return Err(ToolError::new(ErrorKind::NotOwner, message));
        }
        let work = call.detached(move |host| async move {
            let process = match environment {
                Some(environment) => host.panes.set_environment(&process.id, environment)?,
                None => process,
            };
            host.agents.can_restart(&process)?;
            let environment_changed = host.panes.environments.why_changed(&process);
            let _restarting = host.declared.begin_restart(&process);
            let ended = match process.status.is_alive() {
                true => match host.lifecycle.stop(&process, signal).await {
                    // It has ended by itself in the meantime.
                    Err(LifecycleError::Pane(PaneError::NotRunning { .. })) => {
                        host.panes.settled(&process.id)
                    }
                    stopped => stopped?,
                },
                false => process,
            };
            let (started, began_anew) = match host.lifecycle.start(&ended).await {
                // A process that depends on it, or another caller, has just started it.
                Err(LifecycleError::Pane(PaneError::AlreadyRunning(_))) => {
                    (host.panes.settled(&ended.id), None)
                }
                started => started?,
            };
            let waiting_for = waiting_for(&started, &host);
            let Process { id, status, .. } = started;
            let exit = ended.exit;
            let process_id = id;
            Ok(Answer { process_id, status, waiting_for, exit, began_anew, environment_changed })
        });
        work.await
    }
}

/// Whether the caller may change the environment of a process. A program in a person's pane counts as a
/// person, so nobody else may choose what runs there; nor in a declared process, which everyone uses.
fn may_set_environment(call: &Call, process: &Process) -> bool {
    call.caller.is_human_origin() || (is_of_agents(process) && process.declared.is_none())
}
