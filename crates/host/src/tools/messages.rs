//! The log of messages, as `get_project_status` shows it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use patterm_agents::delivery::{Deliveries, Delivery, Receipt, Source};
use patterm_panes::process::ProcessId;

/// How many of the last are shown; all that are still on their way are.
const SHOWN: usize = 20;

/// A text that was put, or is to be put, into a process.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MessageAnswer {
    /// Its number.
    message_id: u64,
    /// `message`, `first_prompt` or `timer`.
    kind: &'static str,
    /// Whose it is: a process id, a tag like `human`, or a timer's id.
    from: String,
    /// Whom it is for.
    to: ProcessId,
    /// When it was sent, in milliseconds since 1970.
    at: u64,
    /// How long it is.
    bytes: usize,
    /// How it begins.
    excerpt: String,
    /// What became of it.
    receipt: Receipt,
}

/// The number of a message as it came: callers write it as a number or as a string.
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
                ToolError::invalid("message_id", format_args!("is {text:?}, which is no number"))
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

/// One message that is still known.
pub(super) fn message(deliveries: &Deliveries, id: u64) -> Result<Delivery, ToolError> {
    deliveries.get(id).ok_or_else(|| {
        let message = format!("no message {id} is known; get_project_status lists the last ones");
        ToolError::new(ErrorKind::NotFound, message)
    })
}

/// The last messages, oldest first.
pub(super) fn last(deliveries: &Deliveries) -> Vec<MessageAnswer> {
    last_messages(deliveries).into_iter().map(MessageAnswer::from).collect()
}

/// The same as they are kept.
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

/// What kind of text it is, and whose.
pub(crate) fn message_source(source: Source) -> (&'static str, String) {
    let outside = || "external".to_owned();
    match source {
        Source::FirstPrompt { from } => {
            ("first_prompt", from.map_or_else(outside, |from| from.to_string()))
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
