//! `message_cancel`: withdraws or replaces a queued message.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{ErrorKind, ToolError};
use super::error_kinds::text_argument;
use super::messages::{MessageAnswer, MessageId, message};
use super::send_message::outside_tag;
use super::tool::{Call, Effect, Loading, Tool};
use crate::caller::Caller;
use patterm_agents::delivery::{Delivery, DeliveryStage, Source};

pub(super) struct MessageCancel;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// From send_message.
    message_id: MessageId,
    /// A text to deliver instead.
    replacement: Option<String>,
}

impl Tool for MessageCancel {
    const NAME: &'static str = "message_cancel";
    const TITLE: &'static str = "Withdraw a message";
    const DESCRIPTION: &'static str = "Withdraws a queued message of yours, or replaces its text.";
    const HELP: &'static str = "Only the sender can do this, and only before patterm has typed any \
        of it. A message that is being delivered, or has been, cannot be withdrawn: send another \
        message instead. A replacement keeps its place in the queue.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("cancel or replace a queued message");
    type Args = Args;
    type Answer = MessageAnswer;

    async fn call(args: Args, call: Call) -> Result<MessageAnswer, ToolError> {
        let deliveries = &call.host.agents.deliveries;
        let known = message(deliveries, args.message_id.number()?)?;
        if !is_sender(&known, &call) {
            let message =
                format!("message {} is not yours; only its sender may withdraw it", known.id);
            return Err(ToolError::new(ErrorKind::NotOwner, message));
        }
        let changed = match &args.replacement {
            _ if known.stage != DeliveryStage::Waiting => None,
            None => deliveries.withdraw(known.id)?,
            Some(text) => {
                let text = text_argument("replacement", text)?;
                let text = match &known.source {
                    Source::Message { tag, .. } => format!("[{tag}] {text}"),
                    Source::FirstPrompt { .. } | Source::Timer { .. } => text,
                };
                deliveries.replace(known.id, call.host.agents.as_prompt(&known.to, &text)?)?
            }
        };
        let Some(changed) = changed else {
            let evidence = message(deliveries, known.id)?.receipt.evidence;
            let message = format!(
                "message {} is no longer queued: {evidence}; send another message instead",
                known.id
            );
            return Err(ToolError::new(ErrorKind::Conflict, message));
        };
        // The recipient may be idle with nothing else to wait for: wake its worker.
        call.host.agents.activities.signals(&changed.to).notify();
        Ok(MessageAnswer::from(message(deliveries, changed.id)?))
    }
}

/// Whether the caller sent it. A person may withdraw every queued message.
fn is_sender(known: &Delivery, call: &Call) -> bool {
    match &known.source {
        _ if call.caller == Caller::Person => true,
        Source::Message { from: Some(from), .. } | Source::FirstPrompt { from: Some(from), .. } => {
            call.caller.process() == Some(from)
        }
        Source::Message { from: None, tag: sent } => {
            matches!(call.caller, Caller::External | Caller::Token(_))
                && *sent == outside_tag(&call.caller)
        }
        Source::FirstPrompt { from: None, .. } | Source::Timer { .. } => false,
    }
}
