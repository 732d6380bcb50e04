//! `timer_fire_when_idle_all`: delivers a text when several processes are all idle.

use super::error::ToolError;
use super::idle_timer::{Answer, Args, set};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_timers::Mode;

pub(super) struct TimerFireWhenIdleAll;

impl Tool for TimerFireWhenIdleAll {
    const NAME: &'static str = "timer_fire_when_idle_all";
    const TITLE: &'static str = "Wake me when all are idle";
    const DESCRIPTION: &'static str = "Wakes you with a text as a new turn when all watched \
        processes are idle, exited or closed; perhaps at once. Set it, then END YOUR TURN.";
    const HELP: &'static str = "The text follows one [system] line with the state of each of them, \
        or that max_wait_seconds have passed. All must be idle at the same time: if one works again, \
        the timer waits for it again. Idle means idle for a second or more; an agent that \
        waits for a person is blocked, not idle, so give max_wait_seconds if that may happen. \
        An agent that has not accepted its first instructions yet is not idle. Setting the same \
        timer again (same owner, watched and body) while it waits gives you the same one, with the \
        newest max_wait_seconds. A paused timer ignores what happens; when resumed, it checks their \
        current states.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        set(Mode::All, args, &call)
    }
}
