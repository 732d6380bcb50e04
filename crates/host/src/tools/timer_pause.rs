//! `timer_pause`: pauses a timer.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::timer::{Summary, own_timer};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct TimerPause;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its id.
    timer_id: String,
}

impl Tool for TimerPause {
    const NAME: &'static str = "timer_pause";
    const TITLE: &'static str = "Pause a timer";
    const DESCRIPTION: &'static str = "Pauses one of your timers until timer_resume.";
    const HELP: &'static str = "A paused delay keeps the time left; a paused idle timer ignores \
        what happens until timer_resume. A paused timer stays paused across restarts of the server. \
        Pausing it again changes nothing.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("pause a timer");
    type Args = Args;
    type Answer = Summary;

    async fn call(args: Args, call: Call) -> Result<Summary, ToolError> {
        let id = own_timer(&call, &args.timer_id)?;
        let timer = call.host.timers.pause(&id)?;
        Ok(Summary::of(&timer, &call.host.timers.now()))
    }
}
