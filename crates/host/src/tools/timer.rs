//! Helpers for the tools about timers: arguments, ownership and descriptions.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ErrorKind, ToolError};
use super::process::own;
use super::tool::Call;
use patterm_panes::process::ProcessId;
use patterm_store::clock::Moment;
use patterm_timers::{BODY_BYTES, MOST_SECONDS, Mode, Timer, TimerId, Wake};

/// A label must fit on a line.
const LABEL_CHARS: usize = 100;

/// Characters of a body that lists show.
const EXCERPT_CHARS: usize = 80;

/// The process that gets the text: the caller, or one that the caller may type into.
pub(super) fn owner(call: &Call, named: Option<&str>) -> Result<ProcessId, ToolError> {
    match (named, call.caller.process()) {
        (Some(id), _) => own(call, id).map(|process| process.id),
        (None, Some(me)) => Ok(me.clone()),
        (None, None) => {
            let why = "is missing; you are not an agent of this project, so name the process that is to \
                get the text";
            Err(ToolError::invalid("owner_process_id", why))
        }
    }
}

/// The process that sets a timer.
pub(super) fn setter(call: &Call) -> Option<ProcessId> {
    call.caller.process().cloned()
}

/// Checks a time argument and converts it to milliseconds, rounded up.
pub(super) fn milliseconds(field: &str, seconds: f64) -> Result<u64, ToolError> {
    if !(0.0..=MOST_SECONDS).contains(&seconds) {
        let why = format_args!("takes 0 to {MOST_SECONDS} seconds, not {seconds}");
        return Err(ToolError::invalid(field, why));
    }
    let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
    Ok(u64::try_from(nanoseconds.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Checks a text argument.
pub(super) fn body(given: String) -> Result<String, ToolError> {
    if given.trim().is_empty() {
        return Err(ToolError::invalid("body", "is empty; say what to do when it fires"));
    }
    if given.len() > BODY_BYTES {
        let why = format_args!(
            "takes up to {BODY_BYTES} bytes, not {}; put the text into a file and name the file",
            given.len()
        );
        return Err(ToolError::invalid("body", why));
    }
    Ok(given)
}

/// Checks a label; an empty one counts as none.
pub(super) fn label(given: Option<String>) -> Result<Option<String>, ToolError> {
    let label = given.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
    let fits = |label: &String| {
        label.chars().count() <= LABEL_CHARS && !label.chars().any(char::is_control)
    };
    let why = format_args!("takes up to {LABEL_CHARS} characters, without control characters");
    match label {
        Some(label) if !fits(&label) => Err(ToolError::invalid("label", why)),
        label => Ok(label),
    }
}

/// Whether the caller owns a timer or has set it. An external caller may use all timers.
fn is_own(call: &Call, timer: &Timer) -> bool {
    let own = |me: &ProcessId| timer.owner == *me || timer.set_by.as_ref() == Some(me);
    call.caller.process().is_none_or(own)
}

/// The id of a timer, if the caller owns it or has set it.
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

/// The timers that the caller owns or has set.
pub(super) fn own_timers(call: &Call) -> Vec<Summary> {
    let (timers, now) = call.host.timers.all();
    let own = timers.iter().filter(|timer| is_own(call, timer));
    own.map(|timer| Summary::of(timer, &now)).collect()
}

/// The condition of a timer.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimerKind {
    Delay,
    IdleAny,
    IdleAll,
    Exit,
}

/// The status of a timer.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TimerStatus {
    Pending,
    Paused,
}

/// A timer in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Summary {
    /// Its id.
    timer_id: TimerId,
    /// Its condition: a delay, or that watched processes become idle or exit.
    kind: TimerKind,
    /// `pending` or `paused`.
    status: TimerStatus,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The process that gets the text.
    owner_process_id: ProcessId,
    /// The agent that set it; absent if that was not an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<ProcessId>,
    /// How long until it fires in any case; absent if it only fires on idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_seconds: Option<f64>,
    /// The watched processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watched: Vec<ProcessId>,
    /// Those of them that are not idle now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_on: Vec<ProcessId>,
    /// The beginning of its text.
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
            waiting_on: timer.watched_done(false),
            excerpt: timer.body.as_deref().map(excerpt),
            set_at: timer.set_at,
        }
    }
}

/// The time left.
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
    fn valid_times_are_accepted() {
        for (seconds, ms) in [(0.0, 0), (0.0001, 1), (1.5, 1_500), (MOST_SECONDS, 31_536_000_000)] {
            assert_eq!(milliseconds("seconds", seconds), Ok(ms));
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for seconds in [-1.0, -0.001, f64::NAN, f64::INFINITY, f64::MAX, MOST_SECONDS + 1.0] {
            let error = milliseconds("max_wait_seconds", seconds).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArgument);
            let words = "`max_wait_seconds` takes 0 to 31536000 seconds, not ";
            assert!(error.message.starts_with(words), "{}", error.message);
        }
    }

    #[test]
    fn an_excerpt_is_the_beginning_on_one_line() {
        assert_eq!(excerpt("a\nb"), "a b");
        assert_eq!(excerpt(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }
}
