//! `select_process`: brings a process to the front in every attached view.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Done, find};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct SelectProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

impl Tool for SelectProcess {
    const NAME: &'static str = "select_process";
    const TITLE: &'static str = "Show a process";
    const DESCRIPTION: &'static str = "Brings a process to the front in every attached view.";
    const HELP: &'static str = "To call for the person, use request_human_attention; this only \
        decides what is seen.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("show a process to the person");
    type Args = Args;
    type Answer = Done;

    async fn call(args: Args, call: Call) -> Result<Done, ToolError> {
        let process = find(&call, &args.process_id)?;
        call.host.looks.send_replace(Some(process.id.clone()));
        call.host.selected.send_replace(Some(process.id));
        Ok(Done::OK)
    }
}
