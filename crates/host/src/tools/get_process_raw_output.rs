//! `get_process_raw_output`: the unprocessed output of a process.

use patterm_wire::base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::get_process_output::STREAM_BYTES;
use super::paging::{Part, Wanted};
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct GetProcessRawOutput;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// The last next_offset; default: the current run.
    since_offset: Option<u64>,
    /// Default 65536.
    max_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The bytes, if they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The offset of the first byte.
    offset: u64,
    /// The offset for the next call.
    next_offset: u64,
    /// How many bytes before these are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    /// There is more: continue at next_offset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// since_offset was beyond the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clamped: bool,
}

impl Tool for GetProcessRawOutput {
    const NAME: &'static str = "get_process_raw_output";
    const TITLE: &'static str = "Raw output of a process";
    const DESCRIPTION: &'static str = "The bytes that a process printed, with escape sequences.";
    const HELP: &'static str = "Offsets only increase, across restarts of the process and of \
        patterm. Without since_offset it begins with the current run, like a stream; 0 is the \
        beginning of all runs.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("raw bytes with escape sequences");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (process, run) = find_run(&call, &args.process_id).await?;
        let since = args.since_offset.unwrap_or(process.run_offset.get());
        // Do not copy more than fits into an answer.
        let most = args.max_bytes.unwrap_or(STREAM_BYTES).min(call.host.limits.answer_bytes as u64);
        call.large(move || Answer::of(Wanted::from(since, most).take(&run.log))).await
    }
}

impl Answer {
    fn of(part: Part) -> Self {
        let Part { offset, mut bytes, dropped, clamped, more, .. } = part;
        bytes.truncate(whole_characters(&bytes));
        let next_offset = offset + bytes.len() as u64;
        let (text, base64) = match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(bytes) => (None, Some(base64::encode(bytes.as_bytes()))),
        };
        let dropped = (dropped > 0).then_some(dropped);
        Self { text, base64, offset, next_offset, dropped, more, clamped }
    }
}

/// How many bytes to return: text that ends inside a character is cut before it.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}
