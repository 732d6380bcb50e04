//! `scratchpad_read`: the content and the revision of a scratchpad.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::scratchpad::{name, with_pads};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct ScratchpadRead;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its name.
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its name.
    name: String,
    /// The whole content.
    content: String,
    /// Its revision; pass it to scratchpad_write as expected_revision.
    revision: String,
    /// When it was changed, in milliseconds since 1970.
    changed_at: u64,
    /// Its author.
    changed_by: String,
}

impl Tool for ScratchpadRead {
    const NAME: &'static str = "scratchpad_read";
    const TITLE: &'static str = "Read a scratchpad";
    const DESCRIPTION: &'static str = "Returns a scratchpad's Markdown and its revision.";
    const HELP: &'static str = "Others write to it too: read it again right before you change \
        it, and pass the revision to scratchpad_write. A person's edit of the file is visible at \
        once, with its own revision.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("read a shared note");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let name = name(&args.name)?;
        let asked = name.clone();
        let pad = with_pads(&call, move |pads| pads.read(&asked)).await?;
        Ok(Answer {
            name: name.to_string(),
            content: pad.content,
            revision: pad.revision.revision,
            changed_at: pad.revision.changed_at,
            changed_by: pad.revision.changed_by,
        })
    }
}
