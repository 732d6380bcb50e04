//! The log of messages in `get_project_status`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use patterm_agents::delivery::{Deliveries, Delivery, Receipt, Source};
use patterm_panes::process::ProcessId;

/// How many of the last messages are shown; pending ones are always shown.
const SHOWN: usize = 20;

/// A text that was, or will be, delivered to a process.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MessageAnswer {
    /// Its number.
    message_id: u64,
    /// `message`, `first_prompt` or `timer`.
    kind: &'static str,
    /// The sender: a process id, a tag like `human`, or a timer's id.
    from: String,
    /// The receiver.
    to: ProcessId,
    /// When it was sent, in milliseconds since 1970.
    at: u64,
    /// Its length.
    bytes: usize,
    /// Its beginning.
    excerpt: String,
    /// Its receipt.
    receipt: Receipt,
}

/// The number of a message as callers write it: a number or a string.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum MessageId {
    Number(u64),
    Text(String),
}

impl MessageId {
    pub(super) fn number(&self) -> Result<u64, ToolError> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(text) => text.parse().map_err(|_| {
                let text: String = text.chars().take(40).collect();
                ToolError::invalid("message_id", format_args!("is {text:?}, which is not a number"))
            }),
        }
    }
}

impl JsonSchema for MessageId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

/// Finds a message that is still known.
pub(super) fn message(deliveries: &Deliveries, id: u64) -> Result<Delivery, ToolError> {
    deliveries.get(id).ok_or_else(|| {
        let message = format!(
            "there is no message {id}, or it is too old; get_project_status lists the last ones"
        );
        ToolError::new(ErrorKind::NotFound, message)
    })
}

/// The last messages, oldest first.
pub(super) fn last(deliveries: &Deliveries) -> Vec<MessageAnswer> {
    last_messages(deliveries).into_iter().map(MessageAnswer::from).collect()
}

/// The same, as deliveries.
pub(crate) fn last_messages(deliveries: &Deliveries) -> Vec<Delivery> {
    let mut all: Vec<_> = deliveries.all();
    let surplus = all.len().saturating_sub(SHOWN);
    let open =
        |delivery: &Delivery| delivery.stage != patterm_agents::delivery::DeliveryStage::Done;
    let mut number = 0;
    all.retain(|delivery| {
        number += 1;
        number > surplus || open(delivery)
    });
    all
}

/// The kind of a text, and its sender.
pub(crate) fn message_source(source: Source) -> (&'static str, String) {
    let outside = || "external".to_owned();
    match source {
        Source::FirstPrompt { from, tag } => {
            let from = from.map(|from| from.to_string());
            ("first_prompt", from.or(tag).unwrap_or_else(outside))
        }
        Source::Message { from: Some(from), .. } => ("message", from.to_string()),
        Source::Message { from: None, tag } => ("message", tag),
        Source::Timer { timer_id } => ("timer", timer_id),
    }
}

impl From<Delivery> for MessageAnswer {
    fn from(delivery: Delivery) -> Self {
        let (kind, from) = message_source(delivery.source);
        Self {
            message_id: delivery.id,
            kind,
            from,
            to: delivery.to,
            at: delivery.at,
            bytes: delivery.bytes,
            excerpt: delivery.excerpt,
            receipt: delivery.receipt,
        }
    }
}
