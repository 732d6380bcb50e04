//! `timer_cancel`: a timer that is no longer wanted.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::Done;
use super::timer::own_timer;
use super::tool::{Call, Effect, Tool};

pub(super) struct TimerCancel;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The timer.
    timer_id: String,
}

impl Tool for TimerCancel {
    const NAME: &'static str = "timer_cancel";
    const TITLE: &'static str = "Cancel a timer";
    const DESCRIPTION: &'static str = "Removes one of your timers before it fires. One that has \
        fired already is not_found, and the error says so: its text is on its way to the owner.";
    const HELP: &'static str = "Yours are those that you own and those that you set for others; an \
        external caller's are all. Others are not_owner.";
    const EFFECT: Effect = Effect::Destroys;
    type Args = Args;
    type Answer = Done;

    async fn call(args: Args, call: Call) -> Result<Done, ToolError> {
        let id = own_timer(&call, &args.timer_id)?;
        call.host.timers.cancel(&id)?;
        Ok(Done::OK)
    }
}
