//! `scratchpad_append`: adds to the end of a scratchpad.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::scratchpad::{Written, author, name, with_pads};
use super::tool::{Call, Effect, Tool};
use crate::pads::Pads;

pub(super) struct ScratchpadAppend;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The scratchpad's name; where there is none, it is created.
    name: String,
    /// What to add, exactly; end it with a newline.
    content: String,
}

impl Tool for ScratchpadAppend {
    const NAME: &'static str = "scratchpad_append";
    const TITLE: &'static str = "Append to a scratchpad";
    const DESCRIPTION: &'static str = "Adds text at the end of a scratchpad, whole and in order with \
        what others add at the same time; creates it if there is none. Needs no revision and never \
        conflicts: the right tool for findings, logs and status lines. No newline is added: end your \
        text with one.";
    const HELP: &'static str = "When the call has answered, the text is on the disk. A call that fails \
        because the server went away may have been carried out: read before you append again.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Answer = Written;

    async fn call(args: Args, call: Call) -> Result<Written, ToolError> {
        let Args { name: given, content } = args;
        let name = name(&given)?;
        let (pad, by) = (name.clone(), author(&call));
        let append = move |pads: &mut Pads| pads.append(&pad, &content, &by);
        Ok(Written::of(&name, with_pads(&call, append).await?))
    }
}
