//! The text that an owner gets when a timer fires.

use crate::book::Why;
use crate::interfaces::Observe;
use crate::limits::NAMED;
use crate::observation::{BusyAgent, WatchState};
use crate::record::{Mode, Timer, Wake, Watched};
use patterm_panes::process::{Exit, Kind, Process, Status};

/// The text of a firing: the body alone, or one line with the reason, then the body. That line
/// is only for agents: a shell would run it, including the names that others chose.
pub(crate) fn text(timer: &Timer, why: Why, observer: &dyn Observe) -> String {
    let line = || format!("[system] {}: {}", heading(timer), reason(timer, why, observer));
    let is_agent = observer.process(&timer.owner).is_none_or(|owner| owner.kind == Kind::Agent);
    match (&timer.wake, &timer.body) {
        (Wake::Delay(_), Some(body)) => body.clone(),
        (Wake::Idle { .. }, Some(body)) if !is_agent => body.clone(),
        (Wake::Idle { .. }, Some(body)) => format!("{}\n{body}", line()),
        (_, None) => line(),
    }
}

fn heading(timer: &Timer) -> String {
    match &timer.label {
        Some(label) => format!("timer {} ({})", timer.id, one_line(label)),
        None => format!("timer {}", timer.id),
    }
}

fn reason(timer: &Timer, why: Why, observer: &dyn Observe) -> String {
    let describe = |watched: &Watched| describe(watched, timer.set_at, observer);
    match (&timer.wake, why) {
        (Wake::Idle { exits: true, watched, .. }, Why::Idle) => {
            format!("all ended: {}.", list(watched.iter().map(describe).collect()))
        }
        (Wake::Idle { mode: Mode::All, watched, .. }, Why::Idle) => {
            format!("all are idle: {}.", list(watched.iter().map(describe).collect()))
        }
        (Wake::Idle { watched, .. }, Why::Idle) => {
            let (idle, others): (Vec<_>, Vec<_>) =
                watched.iter().partition(|w| w.became_idle() || w.state() == WatchState::Closed);
            let idle = list(idle.into_iter().map(describe).collect());
            match others.is_empty() {
                true => format!("{idle}."),
                false => {
                    format!(
                        "{idle}. The others: {}.",
                        list(others.into_iter().map(describe).collect())
                    )
                }
            }
        }
        (Wake::Idle { watched, .. }, Why::Time) => {
            let all = list(watched.iter().map(describe).collect());
            format!("timed out after {}: {all}.", asked_time(timer))
        }
        (Wake::Delay(_), _) => match asked_time(timer).as_str() {
            one @ "1 second" => format!("{one} has passed."),
            time => format!("{time} have passed."),
        },
    }
}

/// The delay or the limit that the timer was set with.
fn asked_time(timer: &Timer) -> String {
    let asked_ms = timer.countdown().map_or(0, |time| time.asked_ms);
    match asked_ms {
        1_000 => "1 second".to_owned(),
        ms if ms % 1_000 == 0 => format!("{} seconds", ms / 1_000),
        ms => format!("{}.{:03} seconds", ms / 1_000, ms % 1_000),
    }
}

/// Describes an agent that has reached a usage limit.
pub fn limited(until: Option<&str>) -> String {
    match until {
        Some(until) => format!("is limited until {}", one_line(until)),
        None => "is limited, and its CLI does not say until when".to_owned(),
    }
}

/// Describes a watched process, for a timer that was set at `set_at`.
fn describe(watched: &Watched, set_at: u64, observer: &dyn Observe) -> String {
    let process = observer.process(&watched.id);
    let name = one_line(process.as_ref().map_or(&watched.name, |process| &process.name));
    let how = match watched.state() {
        WatchState::Idle if observer.has_failed(&watched.id) => {
            "is idle: its last turn failed".to_owned()
        }
        WatchState::Idle => "is idle".to_owned(),
        WatchState::Settling if observer.awaits_text(&watched.id) => {
            "is idle, but has a message on its way".to_owned()
        }
        WatchState::Settling => "has just become idle".to_owned(),
        WatchState::Exited => ending(process.as_ref()),
        WatchState::Closed => "was closed".to_owned(),
        WatchState::Working if watched.became_idle() => "was idle and is working again".to_owned(),
        WatchState::Working => "is working".to_owned(),
        WatchState::ToStart => "waits for its dependencies before it starts".to_owned(),
        WatchState::Blocked => "waits for a person".to_owned(),
        WatchState::Limited => limited(observer.limited_until(&watched.id).as_deref()),
        WatchState::Unknown => "is in an unknown state".to_owned(),
    };
    let lost = match process
        .as_ref()
        .is_some_and(|process| lost_its_conversation_since(process, set_at))
    {
        true => "; it was restarted without its conversation, and the turn you waited for is lost",
        false => "",
    };
    let how = format!("{how}{lost}");
    let below = observer.busy_below(&watched.id);
    match watched.state() {
        WatchState::Idle | WatchState::Settling if !below.is_empty() => {
            format!("{name} ({}) {how}, but below it, {}", watched.id, name_busy(&below))
        }
        _ => format!("{name} ({}) {how}", watched.id),
    }
}

/// Lists agents that are not idle, each with its state.
pub fn name_busy(agents: &[BusyAgent]) -> String {
    let describe_agent = |agent: &BusyAgent| {
        let how = match agent.state {
            WatchState::Blocked => "waits for a person",
            WatchState::Limited => "is limited",
            _ => "is working",
        };
        format!("{} ({}) {how}", one_line(&agent.name), agent.id)
    };
    let mut parts: Vec<_> = agents.iter().take(NAMED).map(describe_agent).collect();
    if agents.len() > NAMED {
        parts.push(format!("{} more are not idle", agents.len() - NAMED));
    }
    parts.join(", ")
}

/// Whether an agent was restarted since `set_at` without its conversation.
fn lost_its_conversation_since(process: &Process, set_at: u64) -> bool {
    let is_lost = process.agent.as_ref().is_some_and(|agent| agent.lost_conversation);
    is_lost && process.status.is_alive() && process.started_at.is_some_and(|at| at >= set_at)
}

fn ending(process: Option<&Process>) -> String {
    match process.map(|process| (process.status, process.exit)) {
        Some((Status::Stopped, _)) => "was stopped".to_owned(),
        Some((Status::Failed, _)) => "could not be started".to_owned(),
        Some((Status::Lost, _)) => "is lost".to_owned(),
        Some((_, Some(Exit { code: Some(code), .. }))) => format!("exited with {code}"),
        Some((_, Some(Exit { signal: Some(signal), .. }))) => {
            format!("was killed by signal {signal}")
        }
        _ => "exited".to_owned(),
    }
}

fn list(mut parts: Vec<String>) -> String {
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}

/// Joins the lines of a text: the first line of a firing must not contain a line that others wrote.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
