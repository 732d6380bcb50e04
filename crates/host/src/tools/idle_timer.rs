//! Helpers for the timers that watch processes.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::find;
use super::timer::{body, label, milliseconds, owner, remaining_seconds, setter};
use super::tool::Call;
use patterm_panes::process::{Kind, ProcessId};
use patterm_timers::{Condition, Mode, NewTimer, Timer, TimerId, WATCHED, limited};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Ids or names; not your own.
    watched: Vec<String>,
    /// The text.
    body: String,
    /// For lists.
    label: Option<String>,
    /// Then fire anyway; default never.
    max_wait_seconds: Option<f64>,
    /// Who gets the text; default: you.
    owner_process_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Its id.
    timer_id: TimerId,
    /// The process that gets the text.
    owner_process_id: ProcessId,
    /// The watched processes that are idle now.
    already_idle: Vec<ProcessId>,
    /// Those that are not.
    waiting_on: Vec<ProcessId>,
    /// Until it fires in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_seconds: Option<f64>,
    /// The same one was already set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already_set: bool,
    /// What to do now, and any warning.
    note: String,
}

/// What to do after setting a timer.
pub(super) const END_YOUR_TURN: &str = "end your turn now; the text comes as a new one";

/// Sets a timer on processes; returns it, and whether it already existed.
pub(super) fn arm(
    mode: Mode,
    exits: bool,
    args: Args,
    call: &Call,
) -> Result<(Timer, bool), ToolError> {
    let owner = owner(call, args.owner_process_id.as_deref())?;
    let watched = watched(&args.watched, &owner, call)?;
    let max_wait = milliseconds("max_wait_seconds", args.max_wait_seconds.unwrap_or(0.0))?;
    let max_wait_ms = (max_wait > 0).then_some(max_wait);
    let new = NewTimer {
        owner,
        set_by: setter(call),
        label: label(args.label)?,
        body: Some(body(args.body)?),
        condition: Condition::Idle { mode, exits, watched, max_wait_ms },
    };
    Ok(call.host.timers.set(new)?)
}

/// Sets a timer that waits for idle processes.
pub(super) fn set(mode: Mode, args: Args, call: &Call) -> Result<Answer, ToolError> {
    let (timer, already_set) = arm(mode, false, args, call)?;
    let waiting_on = timer.watched_done(false);
    Ok(Answer {
        note: note(mode, &timer, call),
        already_idle: timer.watched_done(true),
        remaining_seconds: remaining_seconds(&timer, &call.host.timers.now()),
        timer_id: timer.id,
        owner_process_id: timer.owner,
        waiting_on,
        already_set,
    })
}

fn note(mode: Mode, timer: &Timer, call: &Call) -> String {
    let process = |id| call.host.panes.processes.get(&id);
    let unknown = timer.watched_unknown().into_iter().filter_map(process);
    // The state of an agent is known as soon as it has started.
    let unknown = unknown.filter(|process| process.kind != Kind::Agent);
    let unknown: Vec<_> = unknown.map(|process| process.id.to_string()).collect();
    let note = match (mode, timer.watched_done(false).is_empty()) {
        (_, false) => END_YOUR_TURN,
        (Mode::All, true) => "all are idle: it fires at once; end your turn",
        (Mode::Any, true) => {
            "all are already idle, which does not count: it fires when one of them works again \
             and then becomes idle"
        }
    };
    let limited: Vec<_> =
        timer.watched_limited().iter().map(|id| describe_limit(id, call)).collect();
    let note = match limited.is_empty() {
        true => note.to_owned(),
        false => format!("{}, and is not idle until then. {note}", limited.join(", ")),
    };
    if unknown.is_empty() {
        return note;
    }
    let when = match timer.has_max_wait() {
        true => "may fire only after max_wait_seconds",
        false => "may never fire; give max_wait_seconds",
    };
    let unknown = unknown.join(", ");
    format!(
        "{note}. patterm cannot tell whether {unknown} is working: unless it exits or waits for input, \
         this timer {when}"
    )
}

fn describe_limit(id: &ProcessId, call: &Call) -> String {
    let until = call.host.agents.activities.get(id).activity.limited_until;
    format!("{id} {}", limited(until.as_deref()))
}

/// The processes to watch, without duplicates, by id and name.
fn watched(
    given: &[String],
    owner: &ProcessId,
    call: &Call,
) -> Result<Vec<(ProcessId, String)>, ToolError> {
    if given.is_empty() {
        return Err(ToolError::invalid("watched", "is empty; name the processes to watch"));
    }
    if given.len() > WATCHED {
        let why = format_args!("takes up to {WATCHED} processes, not {}", given.len());
        return Err(ToolError::invalid("watched", why));
    }
    let mut known = HashSet::new();
    let mut watched = Vec::new();
    for id in given {
        let process = find(call, id)?;
        if process.id == *owner {
            let why = format_args!(
                "contains {owner}, which gets the text and would be woken by the end of its own turn; \
                 watch other processes, or use timer_set"
            );
            return Err(ToolError::invalid("watched", why));
        }
        if known.insert(process.id.clone()) {
            watched.push((process.id, process.name));
        }
    }
    Ok(watched)
}
