//! `wait_for_output`: until a process prints anything more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::process::life;
use super::tool::{Call, Effect, Tool};
use super::wait_for_pattern::timeout;

pub(super) struct WaitForOutput;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The process.
    process_id: String,
    /// What was read already: the next_offset of the last answer; by default, all there is now.
    since_offset: Option<u64>,
    /// How long to wait; 30 by default.
    timeout_seconds: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The offset after what there is now.
    next_offset: u64,
    /// The time was over first.
    timed_out: bool,
    /// The process has ended.
    exited: bool,
}

impl Tool for WaitForOutput {
    const NAME: &'static str = "wait_for_output";
    const TITLE: &'static str = "Wait for output";
    const DESCRIPTION: &'static str = "Waits until a process prints anything beyond an offset, or \
        ends. For following its stream with get_process_output; to wait for a certain line use \
        wait_for_pattern.";
    const HELP: &'static str = "A timeout is an answer, not an error.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, live) = life(&call, &args.process_id)?;
        let time = timeout(args.timeout_seconds)?;
        let mut watch = live.watch();
        let since = args.since_offset.unwrap_or_else(|| watch.borrow().parsed);
        let more = async {
            let more = watch.wait_for(|progress| progress.parsed > since || progress.is_over());
            more.await.map(|progress| *progress)
        };
        tokio::select! {
            biased;
            progress = more => {
                let exited = progress.map_or(true, |progress| progress.is_over());
                if exited {
                    live.noted().await;
                }
                Ok(Answer { next_offset: live.log.end(), timed_out: false, exited })
            }
            () = tokio::time::sleep(time) => {
                Ok(Answer { next_offset: live.log.end(), timed_out: true, exited: false })
            }
            () = call.ending.cancelled() => {
                let message = "the connection ends, by the client or with the server; nothing came so far";
                Err(ToolError::new(ErrorKind::Unavailable, message))
            }
        }
    }
}
