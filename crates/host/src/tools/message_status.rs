//! `message_status`: what became of a message.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::messages::{MessageAnswer, MessageId, message};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct MessageStatus;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// From send_message.
    message_id: MessageId,
}

impl Tool for MessageStatus {
    const NAME: &'static str = "message_status";
    const TITLE: &'static str = "Receipt of a message";
    const DESCRIPTION: &'static str = "The receipt of a message as it is now: delivered, queued or \
        stalled, and how that is known.";
    const HELP: &'static str = "A receipt changes: what was queued is delivered later, and what was \
        stalled becomes delivered when there is evidence that the agent took it. The last 200 \
        messages are known.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("was my message delivered, read its receipt again");
    type Args = Args;
    type Answer = MessageAnswer;

    async fn call(args: Args, call: Call) -> Result<MessageAnswer, ToolError> {
        let id = args.message_id.number()?;
        message(&call.host.agents.deliveries, id).map(MessageAnswer::from)
    }
}
