//! `wait_for_output`: waits until a process prints something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use super::wait_for_pattern::timeout;
use patterm_panes::process::Exit;

pub(super) struct WaitForOutput;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// The last next_offset; default: the end.
    since_offset: Option<u64>,
    /// Default 30.
    timeout_seconds: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The end of the output now.
    next_offset: u64,
    /// The timeout passed first.
    timed_out: bool,
    /// The process has ended.
    exited: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    /// since_offset was beyond the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clamped: bool,
}

impl Tool for WaitForOutput {
    const NAME: &'static str = "wait_for_output";
    const TITLE: &'static str = "Wait for output";
    const DESCRIPTION: &'static str = "Waits until a process prints anything beyond an offset, \
        or ends.";
    const HELP: &'static str = "A timeout is an answer, not an error.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("follow a process's output");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (process, run) = find_run(&call, &args.process_id).await?;
        let time = timeout(args.timeout_seconds)?;
        let mut watch = run.watch();
        let end = run.log.end();
        let clamped = args.since_offset.is_some_and(|since| since > end);
        let since =
            args.since_offset.map_or_else(|| watch.borrow().parsed.get(), |since| since.min(end));
        let more = async {
            let more =
                watch.wait_for(|progress| progress.parsed.get() > since || progress.is_over());
            more.await.map(|progress| *progress)
        };
        tokio::select! {
            biased;
            progress = more => {
                let exited = progress.map_or(true, |progress| progress.is_over());
                if exited {
                    run.noted().await;
                }
                let exit = call.host.panes.processes.get(&process.id).and_then(|process| process.exit);
                let exit = exit.filter(|_| exited);
                let next_offset = run.log.end();
                Ok(Answer { next_offset, timed_out: false, exited, exit, clamped })
            }
            () = tokio::time::sleep(time) => {
                let next_offset = run.log.end();
                Ok(Answer { next_offset, timed_out: true, exited: false, exit: None, clamped })
            }
            () = call.ending.cancelled() => {
                Err(ToolError::interrupted(call.host.end(), "there has been no output so far"))
            }
        }
    }
}
