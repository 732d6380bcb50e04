//! `scratchpad_list`: all scratchpads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::scratchpad::{PadSummary, with_pads};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_pads::Pads;

pub(super) struct ScratchpadList;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The scratchpads, sorted by name.
    scratchpads: Vec<PadSummary>,
    /// How many are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

impl Tool for ScratchpadList {
    const NAME: &'static str = "scratchpad_list";
    const TITLE: &'static str = "List scratchpads";
    const DESCRIPTION: &'static str = "Lists scratchpads, the notes that agents and people share.";
    const HELP: &'static str = "changed_by is an agent's process id and name, `external` for a \
        caller that is not an agent, or `a person's editor` if the file itself was edited. If the \
        revision is the one you read, nothing has changed since.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("shared notes, plans, findings");
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        let listed = with_pads(&call, Pads::list).await?;
        let more = Some(listed.more).filter(|more| *more > 0);
        Ok(Answer { scratchpads: PadSummary::all(listed), more })
    }
}
