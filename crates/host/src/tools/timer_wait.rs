//! `timer_wait`: the older form of `timer_set`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{ErrorKind, ToolError};
use super::timer::setter;
use super::timer_set::{Answer, set};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct TimerWait;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Up to a year.
    seconds: f64,
    /// Shown in the line.
    label: Option<String>,
}

impl Tool for TimerWait {
    const NAME: &'static str = "timer_wait";
    const TITLE: &'static str = "Wake me later, without a text";
    const DESCRIPTION: &'static str = "Older form of timer_set, for agents only.";
    const HELP: &'static str = "The line names the timer with its label, and the seconds that have \
        passed.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("older timer without a text");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let Some(me) = setter(&call) else {
            let message = "timer_wait wakes the agent that calls it, but you are not an agent of this \
                project; use timer_set with owner_process_id";
            return Err(ToolError::new(ErrorKind::InvalidArgument, message));
        };
        set(&call, me, args.seconds, None, args.label)
    }
}
