//! `timer_fire_on_exit`: delivers a text when processes have ended.

use schemars::JsonSchema;
use serde::Serialize;

use super::error::ToolError;
use super::idle_timer::{Args, END_YOUR_TURN, arm};
use super::timer::remaining_seconds;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::ProcessId;
use patterm_timers::{Mode, TimerId};

pub(super) struct TimerFireOnExit;

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its id.
    timer_id: TimerId,
    /// The process that gets the text.
    owner_process_id: ProcessId,
    /// The watched processes that have ended.
    already_ended: Vec<ProcessId>,
    /// Those that are still running.
    waiting_on: Vec<ProcessId>,
    /// Until it fires in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_seconds: Option<f64>,
    /// The same one was already set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already_set: bool,
    /// What to do now, and any warning.
    note: &'static str,
}

impl Tool for TimerFireOnExit {
    const NAME: &'static str = "timer_fire_on_exit";
    const TITLE: &'static str = "Wake me when all have ended";
    const DESCRIPTION: &'static str = "Wakes you with a text as a new turn when all watched \
        processes have ended, and says how. For builds and tests; set it, then END YOUR TURN.";
    const HELP: &'static str = "The text follows one [system] line that says how each of them \
        ended, or that max_wait_seconds have passed. Those that have already ended count, so it may \
        fire at once. If a process is started again before all have ended, the timer waits for it again.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("wait until a build or test has ended");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let (timer, already_set) = arm(Mode::All, true, args, &call)?;
        let waiting_on = timer.watched_done(false);
        Ok(Answer {
            note: match waiting_on.is_empty() {
                true => "all have ended: it fires at once; end your turn",
                false => END_YOUR_TURN,
            },
            already_ended: timer.watched_done(true),
            remaining_seconds: remaining_seconds(&timer, &call.host.timers.now()),
            timer_id: timer.id,
            owner_process_id: timer.owner,
            waiting_on,
            already_set,
        })
    }
}
