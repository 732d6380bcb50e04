//! `timer_resume`: continues a paused timer.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::timer::{Summary, own_timer};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct TimerResume;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its id.
    timer_id: String,
}

impl Tool for TimerResume {
    const NAME: &'static str = "timer_resume";
    const TITLE: &'static str = "Resume a timer";
    const DESCRIPTION: &'static str = "Resumes a timer that timer_pause has paused.";
    const HELP: &'static str = "A delay continues with the time left; an idle timer is armed again, \
        as if it were set now. So timer_fire_when_idle_any does not count processes that are idle \
        at that moment, and timer_fire_when_idle_all may fire at once. What happened while it was \
        paused does not count. Resuming a timer that is not paused changes nothing.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("resume a paused timer");
    type Args = Args;
    type Answer = Summary;

    async fn call(args: Args, call: Call) -> Result<Summary, ToolError> {
        let id = own_timer(&call, &args.timer_id)?;
        let timer = call.host.timers.resume(&id)?;
        Ok(Summary::of(&timer, &call.host.timers.now()))
    }
}
