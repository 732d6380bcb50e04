//! `timer_set`: delivers a text after a delay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::timer::{body, label, milliseconds, owner, remaining_seconds, setter};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::process::ProcessId;
use patterm_timers::{Condition, NewTimer, TimerId};

pub(super) struct TimerSet;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Up to a year.
    seconds: f64,
    /// The text.
    body: String,
    /// For lists.
    label: Option<String>,
    /// Who gets the text; default: you.
    owner_process_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its id.
    timer_id: TimerId,
    /// The process that gets the text.
    owner_process_id: ProcessId,
    /// How long until it fires.
    remaining_seconds: f64,
}

/// Sets a delay; `timer_wait` has no text.
pub(super) fn set(
    call: &Call,
    owner: ProcessId,
    seconds: f64,
    text: Option<String>,
    named: Option<String>,
) -> Result<Answer, ToolError> {
    let new = NewTimer {
        owner,
        set_by: setter(call),
        label: label(named)?,
        body: text.map(body).transpose()?,
        condition: Condition::After { ms: milliseconds("seconds", seconds)? },
    };
    let (timer, _) = call.host.timers.set(new)?;
    let remaining = remaining_seconds(&timer, &call.host.timers.now());
    Ok(Answer {
        timer_id: timer.id,
        owner_process_id: timer.owner,
        remaining_seconds: remaining.unwrap_or(0.0),
    })
}

impl Tool for TimerSet {
    const NAME: &'static str = "timer_set";
    const TITLE: &'static str = "Wake me later";
    const DESCRIPTION: &'static str = "After some seconds, wakes you with a text as a new turn; \
        end your turn. To wait for an agent or process: timer_fire_when_idle_all.";
    const HELP: &'static str = "The text arrives exactly as given, once, even if the server is \
        restarted; if it becomes due while the server is down, it arrives when the server is back. \
        Time during which the machine is suspended counts; setting the clock has no effect. \
        owner_process_id delivers the text to another process that you may type into; for a \
        process that is not an agent, it is typed and submitted. A paused timer keeps the time left.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::OnSearch("wake me after some seconds, reminder, sleep");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let owner = owner(&call, args.owner_process_id.as_deref())?;
        set(&call, owner, args.seconds, Some(args.body), args.label)
    }
}
