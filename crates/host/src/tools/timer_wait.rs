//! `timer_wait`: the older form of `timer_set`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{ErrorKind, ToolError};
use super::timer::setter;
use super::timer_set::{Answer, set};
use super::tool::{Call, Effect, Tool};

pub(super) struct TimerWait;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// How long until then; up to a year.
    seconds: f64,
    /// A label; the line that wakes you has it.
    label: Option<String>,
}

impl Tool for TimerWait {
    const NAME: &'static str = "timer_wait";
    const TITLE: &'static str = "Wake me later, without a text";
    const DESCRIPTION: &'static str = "The older form of timer_set: after some seconds you get a \
        fixed [system] line as a fresh turn instead of a text of your own. It returns at once; end \
        your turn after it. For agents only.";
    const HELP: &'static str = "The line says which timer it was, with its label, and how many \
        seconds have passed.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let Some(me) = setter(&call) else {
            let message = "timer_wait wakes the agent that calls it, and you are none of this \
                project; use timer_set with owner_process_id";
            return Err(ToolError::new(ErrorKind::InvalidArgument, message));
        };
        set(&call, me, args.seconds, None, args.label)
    }
}
