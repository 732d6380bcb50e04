//! `timer_list`: the caller's timers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::timer::{Summary, own_timers};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct TimerList;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The timers, oldest first.
    timers: Vec<Summary>,
}

impl Tool for TimerList {
    const NAME: &'static str = "timer_list";
    const TITLE: &'static str = "List timers";
    const DESCRIPTION: &'static str = "Lists your timers, with the time left and the processes \
        they wait for.";
    const HELP: &'static str = "Your timers are those that you own and those that you set for others. \
        An external caller sees all.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("list timers");
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        Ok(Answer { timers: own_timers(&call) })
    }
}
