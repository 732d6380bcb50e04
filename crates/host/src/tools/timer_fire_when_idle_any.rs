//! `timer_fire_when_idle_any`: delivers a text when one of several processes becomes idle.

use super::error::ToolError;
use super::idle_timer::{Answer, Args, set};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_timers::Mode;

pub(super) struct TimerFireWhenIdleAny;

impl Tool for TimerFireWhenIdleAny {
    const NAME: &'static str = "timer_fire_when_idle_any";
    const TITLE: &'static str = "Wake me when one becomes idle";
    const DESCRIPTION: &'static str = "Wakes you with a text as a new turn when any watched \
        process becomes idle, exits or is closed. To wait for agents: hand out work, set this, END \
        YOUR TURN. Those idle now count only after they have worked again; else use \
        timer_fire_when_idle_all.";
    const HELP: &'static str = "The text follows one [system] line that says which are idle, \
        exited or closed, or that max_wait_seconds have passed. It fires once; to wait for the next \
        one, set it again with those that are still working. Idle means idle for a second or more; an \
        agent that waits for a person is blocked, not idle, so give max_wait_seconds if that \
        may happen. A process that was idle when the timer was set and is closed does not count \
        either, unless there is no other left to wait for. Setting the same timer again (same \
        owner, watched and body) while it waits gives you the same one, with the newest \
        max_wait_seconds. A paused timer ignores what happens; when resumed, it is armed again: \
        those idle then do not count.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        set(Mode::Any, args, &call)
    }
}
