//! What tools about timers share: what they take, whose timers they touch, and how one is described.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ErrorKind, ToolError};
use super::process::own;
use super::tool::Call;
use patterm_panes::process::ProcessId;
use patterm_timers::{BODY_BYTES, MOST_SECONDS, Mode, Moment, Timer, TimerId, Wake};

/// A label must fit into a line.
const LABEL_CHARS: usize = 100;

/// Characters of a body that lists show.
const EXCERPT_CHARS: usize = 80;

/// The process that gets the text: the caller, or one that it may type into.
pub(super) fn owner(call: &Call, named: Option<&str>) -> Result<ProcessId, ToolError> {
    match (named, call.caller.process()) {
        (Some(id), _) => own(call, id).map(|process| process.id),
        (None, Some(me)) => Ok(me.clone()),
        (None, None) => {
            let why = "is missing; you are no agent of this project, so name the process that \
                gets the text";
            Err(ToolError::invalid("owner_process_id", why))
        }
    }
}

/// Who sets a timer, as it is kept.
pub(super) fn setter(call: &Call) -> Option<ProcessId> {
    call.caller.process().cloned()
}

/// A time as callers give it, in milliseconds; no less than they said.
pub(super) fn milliseconds(field: &str, seconds: f64) -> Result<u64, ToolError> {
    if !(0.0..=MOST_SECONDS).contains(&seconds) {
        let why = format_args!("takes 0 to {MOST_SECONDS} seconds, not {seconds}");
        return Err(ToolError::invalid(field, why));
    }
    let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
    Ok(u64::try_from(nanoseconds.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// A text as callers give it.
pub(super) fn body(given: String) -> Result<String, ToolError> {
    if given.trim().is_empty() {
        return Err(ToolError::invalid("body", "is empty; say what is to be done then"));
    }
    if given.len() > BODY_BYTES {
        let why = format_args!(
            "takes up to {BODY_BYTES} bytes, not {}; put the rest into a file and name it",
            given.len()
        );
        return Err(ToolError::invalid("body", why));
    }
    Ok(given)
}

/// A label as callers give it; an empty one is none.
pub(super) fn label(given: Option<String>) -> Result<Option<String>, ToolError> {
    let label = given.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
    let fits = |label: &String| {
        label.chars().count() <= LABEL_CHARS && !label.chars().any(char::is_control)
    };
    let why = format_args!("takes up to {LABEL_CHARS} characters, none of them control");
    match label {
        Some(label) if !fits(&label) => Err(ToolError::invalid("label", why)),
        label => Ok(label),
    }
}

/// Whether a timer is the caller's own: it owns it or has set it. All are an external caller's.
fn is_own(call: &Call, timer: &Timer) -> bool {
    let own = |me: &ProcessId| timer.owner == *me || timer.set_by.as_ref() == Some(me);
    call.caller.process().is_none_or(own)
}

/// The id of a timer that is the caller's own.
pub(super) fn own_timer(call: &Call, id: &str) -> Result<TimerId, ToolError> {
    let timer = call.host.timers.find(&TimerId::named(id))?;
    if is_own(call, &timer) {
        return Ok(timer.id);
    }
    let message = format!(
        "timer {id} belongs to {}, and you did not set it; timer_list lists yours",
        timer.owner
    );
    Err(ToolError::new(ErrorKind::NotOwner, message))
}

/// The caller's own timers.
pub(super) fn own_timers(call: &Call) -> Vec<Summary> {
    let (timers, now) = call.host.timers.all();
    let own = timers.iter().filter(|timer| is_own(call, timer));
    own.map(|timer| Summary::of(timer, &now)).collect()
}

/// What a timer waits for.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimerKind {
    Delay,
    IdleAny,
    IdleAll,
    Exit,
}

/// How a timer stands.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimerStatus {
    Pending,
    Paused,
}

/// A timer as lists show it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Summary {
    /// Its id.
    timer_id: TimerId,
    /// What it waits for: a time, or that watched processes rest or end.
    kind: TimerKind,
    /// `pending` or `paused`.
    status: TimerStatus,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The process that gets the text.
    owner_process_id: ProcessId,
    /// The agent that set it; absent if that was somebody outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<ProcessId>,
    /// How long until it fires, whatever happens before; absent where only a rest lets it fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_seconds: Option<f64>,
    /// The watched processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watched: Vec<ProcessId>,
    /// Those of them that are not idle now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_on: Vec<ProcessId>,
    /// How its text begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
    /// When it was set, in milliseconds since 1970.
    set_at: u64,
}

impl Summary {
    pub(super) fn of(timer: &Timer, now: &Moment) -> Self {
        Self {
            timer_id: timer.id.clone(),
            kind: match &timer.wake {
                Wake::Delay(_) => TimerKind::Delay,
                Wake::Idle { exits: true, .. } => TimerKind::Exit,
                Wake::Idle { mode: Mode::Any, .. } => TimerKind::IdleAny,
                Wake::Idle { mode: Mode::All, .. } => TimerKind::IdleAll,
            },
            status: if timer.paused { TimerStatus::Paused } else { TimerStatus::Pending },
            label: timer.label.clone(),
            owner_process_id: timer.owner.clone(),
            set_by: timer.set_by.clone(),
            remaining_seconds: remaining_seconds(timer, now),
            watched: timer.watched().iter().map(|watched| watched.id.clone()).collect(),
            waiting_on: timer.watched_that_rest(false),
            excerpt: timer.body.as_deref().map(excerpt),
            set_at: timer.set_at,
        }
    }
}

/// What is left of a timer's time.
pub(super) fn remaining_seconds(timer: &Timer, now: &Moment) -> Option<f64> {
    timer.left_ms(now).map(|ms| Duration::from_millis(ms).as_secs_f64())
}

/// The beginning of a text on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut line: String = text.chars().map(plain).take(EXCERPT_CHARS).collect();
    if text.chars().nth(EXCERPT_CHARS).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_there_are() {
        for (seconds, ms) in [(0.0, 0), (0.0001, 1), (1.5, 1_500), (MOST_SECONDS, 31_536_000_000)] {
            assert_eq!(milliseconds("seconds", seconds), Ok(ms));
        }
    }

    #[test]
    fn times_that_there_are_not() {
        for seconds in [-1.0, -0.001, f64::NAN, f64::INFINITY, f64::MAX, MOST_SECONDS + 1.0] {
            let error = milliseconds("max_wait_seconds", seconds).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArgument);
            let words = "`max_wait_seconds` takes 0 to 31536000 seconds, not ";
            assert!(error.message.starts_with(words), "{}", error.message);
        }
    }

    #[test]
    fn the_beginning_of_a_body() {
        assert_eq!(excerpt("a\nb"), "a b");
        assert_eq!(excerpt(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }
}
