//! What an owner reads when a timer fires.

use crate::book::Why;
use crate::limits::NAMED;
use crate::record::{Mode, Timer, Wake, Watched};
use crate::sight::{BusyAgent, Look};
use crate::world::Observe;
use patterm_panes::process::{Exit, Kind, Process, Status};

/// The text of a firing: the body alone, or after one line that says why. That line is for agents: a
/// shell would run it, with the names that others chose.
pub(crate) fn text(timer: &Timer, why: Why, around: &dyn Observe) -> String {
    let line = || format!("[system] {}: {}", heading(timer), reason(timer, why, around));
    let is_agent = around.process(&timer.owner).is_none_or(|owner| owner.kind == Kind::Agent);
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

fn reason(timer: &Timer, why: Why, around: &dyn Observe) -> String {
    let tell = |watched: &Watched| tell(watched, timer.set_at, around);
    match (&timer.wake, why) {
        (Wake::Idle { exits: true, watched, .. }, Why::Rest) => {
            format!("all ended: {}.", list(watched.iter().map(tell).collect()))
        }
        (Wake::Idle { mode: Mode::All, watched, .. }, Why::Rest) => {
            format!("all rest: {}.", list(watched.iter().map(tell).collect()))
        }
        (Wake::Idle { watched, .. }, Why::Rest) => {
            let (rested, others): (Vec<_>, Vec<_>) =
                watched.iter().partition(|w| w.has_rested() || w.look() == Look::Closed);
            let rested = list(rested.into_iter().map(tell).collect());
            match others.is_empty() {
                true => format!("{rested}."),
                false => {
                    format!(
                        "{rested}. The others: {}.",
                        list(others.into_iter().map(tell).collect())
                    )
                }
            }
        }
        (Wake::Idle { watched, .. }, Why::Time) => {
            let all = list(watched.iter().map(tell).collect());
            format!("{} without that: {all}.", passed(timer))
        }
        (Wake::Delay(_), _) => format!("{}.", passed(timer)),
    }
}

fn passed(timer: &Timer) -> String {
    let asked_ms = timer.countdown().map_or(0, |time| time.asked_ms);
    match asked_ms {
        1_000 => "1 second has passed".to_owned(),
        ms if ms % 1_000 == 0 => format!("{} seconds have passed", ms / 1_000),
        ms => format!("{}.{:03} seconds have passed", ms / 1_000, ms % 1_000),
    }
}

/// How an agent at a limit is.
pub fn limited(until: Option<&str>) -> String {
    match until {
        Some(until) => format!("is limited until {}", one_line(until)),
        None => "is limited: its CLI does not say until when".to_owned(),
    }
}

/// A watched process and how it is, for a timer that was set then.
fn tell(watched: &Watched, set_at: u64, around: &dyn Observe) -> String {
    let process = around.process(&watched.id);
    let name = one_line(process.as_ref().map_or(&watched.name, |process| &process.name));
    let how = match watched.look() {
        Look::Idle if around.has_failed(&watched.id) => "is idle: its last turn failed".to_owned(),
        Look::Idle => "is idle".to_owned(),
        Look::Pausing if around.awaits_text(&watched.id) => {
            "is idle, with a message on its way to it".to_owned()
        }
        Look::Pausing => "pauses".to_owned(),
        Look::Exited => ending(process.as_ref()),
        Look::Closed => "was closed".to_owned(),
        Look::Working if watched.has_rested() => "was idle and is working again".to_owned(),
        Look::Working => "is working".to_owned(),
        Look::ToStart => "waits for others to be ready before it is started".to_owned(),
        Look::Blocked => "waits for a person".to_owned(),
        Look::Limited => limited(around.limited_until(&watched.id).as_deref()),
        Look::Unknown => "is in an unknown state".to_owned(),
    };
    let lost = match process.as_ref().is_some_and(|process| began_anew_since(process, set_at)) {
        true => "; it was restarted without its conversation, and the turn you waited for is lost",
        false => "",
    };
    let how = format!("{how}{lost}");
    let below = around.busy_below(&watched.id);
    match watched.look() {
        Look::Idle | Look::Pausing if !below.is_empty() => {
            format!("{name} ({}) {how}, but below it, {}", watched.id, name_busy(&below))
        }
        _ => format!("{name} ({}) {how}", watched.id),
    }
}

/// Names agents that do not rest, each with how it is.
pub fn name_busy(agents: &[BusyAgent]) -> String {
    let describe = |agent: &BusyAgent| {
        let how = match agent.look {
            Look::Blocked => "waits for a person",
            Look::Limited => "is limited",
            _ => "is working",
        };
        format!("{} ({}) {how}", one_line(&agent.name), agent.id)
    };
    let mut parts: Vec<_> = agents.iter().take(NAMED).map(describe).collect();
    if agents.len() > NAMED {
        parts.push(format!("{} more are not idle", agents.len() - NAMED));
    }
    parts.join(", ")
}

/// Whether an agent runs that was restarted since then, without its conversation.
fn began_anew_since(process: &Process, set_at: u64) -> bool {
    let anew = process.agent.as_ref().is_some_and(|agent| agent.anew);
    anew && process.status.is_alive() && process.started_at.is_some_and(|at| at >= set_at)
}

fn ending(process: Option<&Process>) -> String {
    match process.map(|process| (process.status, process.exit)) {
        Some((Status::Stopped, _)) => "was stopped".to_owned(),
        Some((Status::Failed, _)) => "could not be started".to_owned(),
        Some((Status::Lost, _)) => "is lost".to_owned(),
        Some((_, Some(Exit { code: Some(code), .. }))) => format!("exited with {code}"),
        Some((_, Some(Exit { signal: Some(signal), .. }))) => {
            format!("was ended by signal {signal}")
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

/// The first line is ours alone: nothing that others named may begin a second.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
