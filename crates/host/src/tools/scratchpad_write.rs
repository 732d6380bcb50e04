//! `scratchpad_write`: replaces a scratchpad at an expected revision, or creates one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::scratchpad::{Written, author, name, with_pads};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_pads::Pads;

pub(super) struct ScratchpadWrite;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// A plain name such as `plan`.
    name: String,
    /// The whole content, Markdown.
    content: String,
    /// The revision you read; omit to create.
    expected_revision: Option<String>,
}

impl Tool for ScratchpadWrite {
    const NAME: &'static str = "scratchpad_write";
    const TITLE: &'static str = "Write a scratchpad";
    const DESCRIPTION: &'static str = "Replaces ALL of a scratchpad if expected_revision is still \
        its revision; without one it only creates. On conflict, read it again, merge, write. To \
        add: scratchpad_append.";
    const HELP: &'static str = "Never resend your old text with the new revision: it would erase \
        somebody else's changes. The error for a conflict contains the current revision and changed_by. \
        When the call returns, the content is on disk; it is written completely or not at all. \
        The answer's revision is the one to expect in your next write.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("create or change a shared note");
    type Args = Args;
    type Answer = Written;

    async fn call(args: Args, call: Call) -> Result<Written, ToolError> {
        let Args { name: given, content, expected_revision } = args;
        let name = name(&given)?;
        let (pad, by) = (name.clone(), author(&call));
        let write =
            move |pads: &mut Pads| pads.write(&pad, &content, expected_revision.as_deref(), &by);
        Ok(Written::of(&name, with_pads(&call, write).await?))
    }
}
