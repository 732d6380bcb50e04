//! `scratchpad_list`: all scratchpads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::scratchpad::{PadSummary, with_pads};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_pads::Pads;

pub(super) struct ScratchpadList;

/// Nothing is asked.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The scratchpads, by name.
    scratchpads: Vec<PadSummary>,
    /// How many there are beyond those listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

impl Tool for ScratchpadList {
    const NAME: &'static str = "scratchpad_list";
    const TITLE: &'static str = "List scratchpads";
    const DESCRIPTION: &'static str = "Lists the project's scratchpads, notes that agents and \
        people share. Look here before you begin one.";
    const HELP: &'static str = "changed_by is an agent's process id and name, `external` for a \
        call by nobody's agent, or `a person's editor` where the file itself was edited. A \
        revision that is the one you read means that nothing changed since.";
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
