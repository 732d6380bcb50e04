//! `timer_cancel`: cancels a timer.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::Done;
use super::timer::own_timer;
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct TimerCancel;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Its id.
    timer_id: String,
}

impl Tool for TimerCancel {
    const NAME: &'static str = "timer_cancel";
    const TITLE: &'static str = "Cancel a timer";
    const DESCRIPTION: &'static str = "Cancels one of your timers before it fires.";
    const HELP: &'static str = "Fails with not_found if the timer has already fired, and says so: \
        its text is on its way to the owner. Your timers are those that you own and those that you \
        set for others; an external caller may cancel all. For others it fails with not_owner.";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::OnSearch("cancel a timer");
    type Args = Args;
    type Answer = Done;

    async fn call(args: Args, call: Call) -> Result<Done, ToolError> {
        let id = own_timer(&call, &args.timer_id)?;
        call.host.timers.cancel(&id)?;
        Ok(Done::OK)
    }
}
