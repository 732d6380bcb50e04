//! `send_message`: delivers a message to an agent as a turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::error_kinds::text_argument;
use super::process::find;
use super::tool::{Call, Effect, Loading, Tool};
use crate::caller::Caller;
use crate::host::Host;
use patterm_agents::delivery::{NewDelivery, Receipt, Source};
use patterm_panes::process::{Kind, Process};

pub(super) struct SendMessage;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    target_process_id: String,
    /// The text.
    message: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// For message_status and message_cancel.
    message_id: u64,
    /// Its receipt.
    receipt: Receipt,
}

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Message an agent";
    const DESCRIPTION: &'static str = "Sends a message to another agent as a turn. Returns at \
        once with a receipt: delivered, queued (it will arrive; do not send it again) or \
        stalled. The answer arrives in YOUR OWN pane as a new turn: set an idle timer and end \
        your turn; never use wait_for_pattern on the other agent.";
    const HELP: &'static str = "Tags: [orchestrator] from an agent above, [sub-agent:NAME] from \
        below, [agent:NAME] from elsewhere in the tree, [human], [external]. A message waits while the \
        agent starts, asks a person for permission, or has an unfinished draft in its prompt. A very \
        long one is written to a file in the project, and the turn refers to it. message_status reads a \
        receipt again, message_cancel withdraws or replaces a queued message, and get_project_status \
        lists the last messages.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let target = find(&call, &args.target_process_id)?;
        if target.kind != Kind::Agent {
            let why = format_args!("is {}, which is not an agent", target.id);
            return Err(ToolError::invalid("target_process_id", why).suggest("send_input", ""));
        }
        if call.caller.process() == Some(&target.id) {
            return Err(ToolError::invalid("target_process_id", "is your own process"));
        }
        if !target.status.is_alive() {
            let message = format!("{} ({}) is not running", target.id, target.name);
            return Err(ToolError::new(ErrorKind::NotRunning, message));
        }
        let message = text_argument("message", &args.message)?;
        let tag = tag(&call.caller, &target, &call.host);
        let text = call.host.agents.as_prompt(&target.id, &format!("[{tag}] {message}"))?;
        let source = Source::Message { from: call.caller.process().cloned(), tag };
        if call.caller == Caller::Person {
            call.host.panes.attended(&target.id);
        }
        let new = NewDelivery { to: target.id, source, key: None, text };
        let message_id = call.host.agents.deliveries.enqueue(new)?;
        let receipt = call.detached(move |host| async move {
            Ok(host.agents.deliverer.receipt(message_id).await)
        });
        Ok(Answer { message_id, receipt: receipt.await? })
    }
}

/// The tag of a sender that is not a process of the project.
pub(super) fn outside_tag(caller: &Caller) -> String {
    match caller {
        Caller::Person => "human".into(),
        Caller::Token(name) => format!("external:{name}"),
        Caller::External | Caller::Elsewhere | Caller::Process(_) | Caller::Inside(_) => {
            "external".into()
        }
    }
}

/// The tag that tells the reader who sent a message.
fn tag(caller: &Caller, target: &Process, host: &Host) -> String {
    let sender = caller.process().and_then(|id| host.panes.processes.get(id));
    let Some(sender) = sender else { return outside_tag(caller) };
    // A name must not close the tag.
    let name = sender.name.replace('[', "(").replace(']', ")");
    if host.panes.processes.is_below(target, &sender.id) {
        return "orchestrator".into();
    }
    match host.panes.processes.is_below(&sender, &target.id) {
        true => format!("sub-agent:{name}"),
        false => format!("agent:{name}"),
    }
}
