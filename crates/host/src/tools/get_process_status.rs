//! `get_process_status`: everything that is known about one process.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::{Summary, find};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::tree;

pub(super) struct GetProcessStatus;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    #[serde(flatten)]
    summary: Summary,
    /// The operating system's process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    /// The command line.
    argv: Vec<String>,
    /// The working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    working_dir: Option<PathBuf>,
    #[serde(flatten)]
    terminal: Option<Terminal>,
    /// The end of its output; offsets only increase.
    output_offset: u64,
    /// How often it was started.
    runs: u64,
    /// When it was last started, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<u64>,
    /// When it last ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    /// What it and its descendants use, or used a quarter of a second ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<tree::Usage>,
}

#[derive(Serialize, JsonSchema)]
struct Terminal {
    /// Its size.
    size: super::get_process_output::SizeAnswer,
    /// The position of the cursor.
    cursor: super::get_process_output::CursorAnswer,
    /// The title that the program set.
    title: String,
    /// Whether a full-screen program is shown.
    alternate_screen: bool,
    /// Increases with every change of the screen.
    screen_version: u64,
}

impl Tool for GetProcessStatus {
    const NAME: &'static str = "get_process_status";
    const TITLE: &'static str = "Status of a process";
    const DESCRIPTION: &'static str = "Everything known about a process: status, activity, exit, \
        pid, CPU, memory.";
    const HELP: &'static str = "Use get_process_output for its screen. Compare screen_version or \
        output_offset with an earlier answer to see whether anything happened.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("one process: pid, title, CPU, memory, exit");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = find(&call, &args.process_id)?;
        let run = call.host.panes.run_of(&process.id);
        if let Some(run) = &run {
            call.host.panes.data_plane.rebuilt(run).await;
        }
        let status = run.as_ref().and_then(|run| run.status());
        let alive = process.status.is_alive();
        call.host.agents.activities.refresh(&process.id);
        let terminal = run.as_ref().map(|run| {
            let screen = run.screen();
            Terminal {
                size: screen.size().into(),
                cursor: screen.cursor().into(),
                title: screen.title().to_owned(),
                alternate_screen: screen.modes().alternate_screen,
                screen_version: screen.version(),
            }
        });
        // Taken together with the entry: the process may end while its usage is read.
        let summary = Summary::of(&process, &call.host);
        // Reads /proc for every process below it: not on the thread that serves all connections.
        let usage = match run.clone().zip(status.filter(|_| alive)) {
            Some((run, status)) => Some(call.blocking(move || run.usage(status.init)).await?),
            None => None,
        };
        Ok(Answer {
            summary,
            pid: status.filter(|_| alive).map(|status| status.program),
            usage,
            output_offset: run.as_ref().map_or(0, |run| run.log.end()),
            argv: process.recipe.as_ref().map(|recipe| recipe.argv.clone()).unwrap_or_default(),
            working_dir: process.recipe.map(|recipe| recipe.working_dir),
            terminal,
            runs: process.runs.get(),
            started_at: process.started_at,
            ended_at: process.ended_at,
        })
    }
}
