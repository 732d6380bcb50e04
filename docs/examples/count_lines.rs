//! `count_lines`: counts the lines that a process has printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::find_run;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::data_plane::ProcessRun;

pub(super) struct CountLines;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Lines of the current run. A line that the terminal wrapped counts once.
    lines: u64,
}

impl Tool for CountLines {
    const NAME: &'static str = "count_lines";
    const TITLE: &'static str = "Count lines";
    const DESCRIPTION: &'static str = "Returns the number of lines that a process has printed.";
    const HELP: &'static str = "Lines that were dropped from the history are not counted.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("count lines of output");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (_, run) = find_run(&call, &args.process_id).await?;
        // A history can be megabytes long; the thread that answers requests must not read it.
        let lines = call.blocking(move || count(&run)).await?;
        Ok(Answer { lines })
    }
}

pub(super) fn count(run: &ProcessRun) -> u64 {
    let (mut lines, mut last) = (0, None);
    run.visit_lines(0, |line| {
        // A very long line comes in several parts with the same number.
        if last.replace(line.number) != Some(line.number) {
            lines += 1;
        }
        true
    });
    lines
}
