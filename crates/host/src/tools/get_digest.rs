//! `get_digest`: returns what happened in the project, summed up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{ErrorKind, ToolError};
use super::tool::{Call, Effect, Loading, Tool};
use crate::digest;

pub(super) struct GetDigest;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// First seq; default: an hour ago.
    since: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The `since` of the next call.
    next: u64,
    /// Sections; see help.
    digest: Map<String, Value>,
}

impl Tool for GetDigest {
    const NAME: &'static str = "get_digest";
    const TITLE: &'static str = "Sum up events";
    const DESCRIPTION: &'static str =
        "What happened to the whole team, summed up; for orchestrators.";
    const HELP: &'static str = "`needs_you` has what needs a person now, most urgent first; \
        `agents` has each agent's turns, times in each state, messages by what became of them, \
        commits and files, and what happened to it; then processes, ports, scratchpads, shared \
        servers and the project. Each entry has the seq of its event, and the process, run and \
        offset where it happened. It is built from events alone: `unknown_ms` is time of which \
        no event says what the agent did, `missing` events are no longer kept, `left_out` \
        entries had no room. get_events has the events themselves.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("summary, digest, while you were away");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let host = call.host.clone();
        let digest = call.blocking(move || digest::for_model(&host, args.since)).await?;
        let digest = digest.map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()))?;
        let next = digest.next;
        match serde_json::to_value(digest) {
            Ok(Value::Object(digest)) => Ok(Answer { next, digest }),
            _ => Err(ToolError::new(ErrorKind::Internal, "cannot serialize the digest")),
        }
    }
}
