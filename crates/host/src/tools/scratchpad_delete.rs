//! `scratchpad_delete`: removes a scratchpad at an expected revision.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::Done;
use super::scratchpad::{name, with_pads};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct ScratchpadDelete;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its name.
    name: String,
    /// The revision you read.
    expected_revision: String,
}

impl Tool for ScratchpadDelete {
    const NAME: &'static str = "scratchpad_delete";
    const TITLE: &'static str = "Delete a scratchpad";
    const DESCRIPTION: &'static str = "Deletes a scratchpad if expected_revision is still its \
        revision.";
    const HELP: &'static str = "On conflict, somebody has changed it and nothing is removed: read \
        it again before you decide. Others may still need it; remove only what you created, or what \
        you were asked to remove.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("delete a shared note");
    type Args = Args;
    type Answer = Done;

    async fn call(args: Args, call: Call) -> Result<Done, ToolError> {
        let Args { name: given, expected_revision } = args;
        let name = name(&given)?;
        with_pads(&call, move |pads| pads.delete(&name, &expected_revision)).await?;
        Ok(Done::OK)
    }
}
