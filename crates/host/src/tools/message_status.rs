//! `message_status`: the receipt of a message.

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
    const DESCRIPTION: &'static str = "A message's receipt: delivered, queued or stalled, with \
        evidence.";
    const HELP: &'static str = "A receipt can change: a queued message is delivered later, and a \
        stalled one becomes delivered when there is evidence that the agent accepted it. Receipts of \
        the last 200 messages are kept.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("was my message delivered");
    type Args = Args;
    type Answer = MessageAnswer;

    async fn call(args: Args, call: Call) -> Result<MessageAnswer, ToolError> {
        let id = args.message_id.number()?;
        message(&call.host.agents.deliveries, id).map(MessageAnswer::from)
    }
}
