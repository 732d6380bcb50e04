//! `request_human_attention`: calls for a person.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Done, find};
use super::tool::{Call, Effect, Tool};
use crate::host::now_ms;
use crate::process::Attention;

pub(super) struct RequestHumanAttention;

/// A reason must fit into a notification.
const REASON_CHARS: usize = 500;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The process a person should look at: yours, or another.
    process_id: String,
    /// Why, in a sentence.
    reason: String,
}

impl Tool for RequestHumanAttention {
    const NAME: &'static str = "request_human_attention";
    const TITLE: &'static str = "Call for a person";
    const DESCRIPTION: &'static str = "Marks a process for a person, with your reason: when a \
        decision, a login or a permission is needed that is not yours to give. The mark goes when the \
        person goes there or types into it. It does not wait: end your turn, or go on with something else.";
    const HELP: &'static str = "A second call replaces the first reason.";
    const EFFECT: Effect = Effect::Sets;
    type Args = Args;
    type Answer = Done;

    async fn call(args: Args, call: Call) -> Result<Done, ToolError> {
        let process = find(&call, &args.process_id)?;
        let reason: String = args
            .reason
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        let reason = reason.trim();
        if reason.is_empty() || reason.chars().count() > REASON_CHARS {
            let why = format_args!("takes 1 to {REASON_CHARS} characters");
            return Err(ToolError::invalid("reason", why));
        }
        let by = call.caller.process().map_or_else(|| "external".into(), ToString::to_string);
        let attention = Attention { reason: reason.to_owned(), by, at: now_ms() };
        call.host.update(&process.id, |process| process.attention = Some(attention))?;
        Ok(Done::OK)
    }
}
