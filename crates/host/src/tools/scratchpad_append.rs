//! `scratchpad_append`: adds to the end of a scratchpad.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::scratchpad::{Written, author, name, with_pads};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_pads::Pads;

pub(super) struct ScratchpadAppend;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its name.
    name: String,
    /// The text to add.
    content: String,
}

impl Tool for ScratchpadAppend {
    const NAME: &'static str = "scratchpad_append";
    const TITLE: &'static str = "Append to a scratchpad";
    const DESCRIPTION: &'static str = "Adds text to the end of a scratchpad, or creates it. End \
        the text with a newline.";
    const HELP: &'static str = "Use it for findings, logs and status lines. Texts that several \
        callers append at the same time are not mixed. When the call returns, \
        the text is on disk. If a call fails because the server ended, the text may have been \
        appended anyway: read before you append again.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("add to a shared note");
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
