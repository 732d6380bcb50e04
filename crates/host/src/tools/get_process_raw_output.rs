//! `get_process_raw_output`: the bytes as a process printed them.

use patterm_wire::base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::get_process_output::STREAM_BYTES;
use super::process::life;
use super::tool::{Call, Effect, Tool};

pub(super) struct GetProcessRawOutput;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The process.
    process_id: String,
    /// Where to begin: the next_offset of the last answer, or 0.
    since_offset: Option<u64>,
    /// How many bytes at the most; 65536 by default.
    max_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The bytes, where they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Where they begin.
    offset: u64,
    /// Where the next call goes on.
    next_offset: u64,
    /// Bytes before them that are gone for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

impl Tool for GetProcessRawOutput {
    const NAME: &'static str = "get_process_raw_output";
    const TITLE: &'static str = "Raw output of a process";
    const DESCRIPTION: &'static str = "The bytes a process printed, escape sequences included, from \
        an offset on: as text where they are UTF-8, else as base64. For reading, \
        get_process_output is better.";
    const HELP: &'static str = "Every byte has an offset that only grows, across restarts of the \
        process and of patterm.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, live) = life(&call, &args.process_id)?;
        let since = args.since_offset.unwrap_or(0);
        let most = usize::try_from(args.max_bytes.unwrap_or(STREAM_BYTES)).unwrap_or(usize::MAX);
        // What would not fit into an answer anyway need not be copied.
        let mut copied = live.log.copy(since, most.min(call.host.limits.answer_bytes));
        copied.bytes.truncate(whole_characters(&copied.bytes));
        let next_offset = copied.offset + copied.bytes.len() as u64;
        let dropped = copied.offset.saturating_sub(since);
        let (text, base64) = match String::from_utf8(copied.bytes) {
            Ok(text) => (Some(text), None),
            Err(bytes) => (None, Some(base64::encode(bytes.as_bytes()))),
        };
        let dropped = (dropped > 0).then_some(dropped);
        Ok(Answer { text, base64, offset: copied.offset, next_offset, dropped })
    }
}

/// How many bytes to answer with: text that was cut inside a character is text up to there.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}
