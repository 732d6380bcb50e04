//! `request_human_attention`: asks a person to look at a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::find;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::Attention;

pub(super) struct RequestHumanAttention;

/// A reason must fit into a notification.
const REASON_CHARS: usize = 500;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name; yours or another.
    process_id: String,
    /// One sentence.
    reason: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The request is set.
    ok: bool,
    /// Whether a person has patterm's screen open now.
    watched: bool,
    /// A note if nobody is watching.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// The note for a caller whose request nobody sees now.
const NOBODY: &str = "nobody has patterm's screen open now; the request stays until a person handles \
    it, so do not expect an answer soon";

impl Tool for RequestHumanAttention {
    const NAME: &'static str = "request_human_attention";
    const TITLE: &'static str = "Ask for attention";
    const DESCRIPTION: &'static str = "Asks a person to look at a process: for a decision, login \
        or permission that only a person can give. Does not wait.";
    const HELP: &'static str = "A second call replaces the first reason. The request stays until a \
        person types there, answers or dismisses it. The answer says whether anybody is watching.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
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
        let at = call.host.panes.clock().wall_ms();
        let attention = Attention { reason: reason.to_owned(), by, at };
        call.host.panes.update(&process.id, |process| process.attention = Some(attention))?;
        let watched = call.host.selections.has_followers();
        Ok(Answer { ok: true, watched, note: (!watched).then_some(NOBODY) })
    }
}
