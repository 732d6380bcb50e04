//! `wait_for_agents`: waits until agents are idle, blocked or gone, for callers that cannot be
//! woken.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};

use super::error::{ErrorKind, ToolError};
use super::process::{find, shown_status};
use super::tool::{Call, Effect, Loading, Tool};
use super::wait_for_pattern::{REPORT_EVERY, timeout};
use crate::host::Host;
use patterm_agents::activity::{Activity, ActivityState};
use patterm_panes::process::{Exit, Process, ProcessId, Status};
use patterm_timers::{Observe, WATCHED};
use tokio::time::Instant;

pub(super) struct WaitForAgents;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Until {
    #[default]
    Idle,
    Exited,
    Blocked,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    All,
    Any,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Ids or names.
    process_ids: Vec<String>,
    /// Default `idle`.
    #[serde(default)]
    until: Until,
    /// Default `all`.
    #[serde(default)]
    mode: Mode,
    /// Default 30.
    timeout_seconds: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Those that are in that state now, with the evidence.
    reached: Vec<AgentAnswer>,
    /// The others.
    waiting_on: Vec<AgentAnswer>,
    /// The timeout passed first.
    timed_out: bool,
    /// How long it took.
    elapsed_ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct AgentAnswer {
    /// Its id.
    process_id: ProcessId,
    /// Its name.
    name: String,
    /// Its status; absent once it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// Whether it is working, with the evidence.
    activity: Activity,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
}

impl Tool for WaitForAgents {
    const NAME: &'static str = "wait_for_agents";
    const TITLE: &'static str = "Wait for agents";
    const DESCRIPTION: &'static str = "Waits until agents are idle, exited or blocked, and says \
        which and why. For callers without a pane, and short waits; an agent sets \
        timer_fire_when_idle_all instead.";
    const HELP: &'static str = "A timeout is an answer, not an error: call it again. A process \
        that exited or was closed counts as idle. An agent is not idle while a message waits for \
        it or right after it got one, nor at a usage limit: then activity says until when. Waiting \
        for `blocked` also ends when all of them have ended. To read their output, use \
        get_process_output.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("wait until agents are idle or blocked");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let began = Instant::now();
        let time = timeout(args.timeout_seconds)?;
        let watched = watched(&args.process_ids, &call)?;
        let host = &call.host;
        let most = host.limits.waiters;
        let _place = host.agents.activities.waiter_permit(most).ok_or_else(|| {
            let message = format!(
                "the limit of {most} calls waiting for agents has been reached; wait for one to finish"
            );
            ToolError::new(ErrorKind::Limit, message)
        })?;
        // Before the first check, so that no change is missed between the check and the wait.
        let mut activities = host.agents.activities.changes();
        let mut processes = host.panes.processes.changes();
        let mut deliveries = host.agents.deliveries.changes();
        // Processes without evidence are observed for as long as this call waits.
        let _followed: Vec<_> =
            watched.iter().map(|(id, _)| host.agents.activities.follow(id)).collect();
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        let mut reports = interval(REPORT_EVERY);
        reports.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let answer = |timed_out| {
            let (reached, waiting_on) =
                watched.iter().partition::<Vec<_>, _>(|(id, _)| is_reached(host, id, args.until));
            let describe = |(id, name): &(ProcessId, String)| AgentAnswer::of(host, id, name);
            Answer {
                reached: reached.into_iter().map(describe).collect(),
                waiting_on: waiting_on.into_iter().map(describe).collect(),
                timed_out,
                elapsed_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        };
        loop {
            if is_done(host, &watched, args.until, args.mode) {
                return Ok(answer(false));
            }
            tokio::select! {
                biased;
                _ = activities.changed() => {}
                _ = processes.changed() => {}
                _ = deliveries.changed() => {}
                () = &mut over => return Ok(answer(true)),
                () = call.ending.cancelled() => {
                    let so_far = "the agents have not reached that state so far";
                    return Err(ToolError::interrupted(call.host.end(), so_far));
                }
                _ = reports.tick(), if call.progress.is_wanted() => {
                    let waited = began.elapsed().as_secs_f64();
                    call.progress.report(waited, Some(time.as_secs_f64()), "waiting for agents");
                }
            }
        }
    }
}

/// Whether the wait is over.
fn is_done(host: &Host, watched: &[(ProcessId, String)], until: Until, mode: Mode) -> bool {
    let reached = |(id, _): &(ProcessId, String)| is_reached(host, id, until);
    let ended = |(id, _): &(ProcessId, String)| !is_alive(host, id);
    let done = match mode {
        Mode::All => watched.iter().all(|one| reached(one) || ended(one)),
        Mode::Any => watched.iter().any(reached),
    };
    // An ended process reaches no other state.
    done || watched.iter().all(ended)
}

fn is_reached(host: &Host, id: &ProcessId, until: Until) -> bool {
    match until {
        Until::Exited => !is_alive(host, id),
        Until::Idle => host.activity.observation(id).is_idle() && !has_message(host, id),
        Until::Blocked => {
            is_alive(host, id)
                && host.agents.activities.get(id).activity.state == ActivityState::Blocked
        }
    }
}

fn is_alive(host: &Host, id: &ProcessId) -> bool {
    let runs = |process: &Process| shown_status(process, host).is_alive();
    host.panes.processes.get(id).is_some_and(|process| runs(&process))
}

/// Whether a message is on its way to a process.
fn has_message(host: &Host, id: &ProcessId) -> bool {
    host.agents.deliveries.has_open(id) && is_alive(host, id)
}

impl AgentAnswer {
    fn of(host: &Host, id: &ProcessId, name: &str) -> Self {
        let process = host.panes.processes.get(id);
        let activity = match &process {
            Some(process) => host.activity.of(process),
            None => Activity::new(ActivityState::Idle, "it was closed"),
        };
        Self {
            process_id: id.clone(),
            name: process.as_ref().map_or_else(|| name.to_owned(), |process| process.name.clone()),
            status: process.as_ref().map(|process| shown_status(process, host)),
            exit: process.and_then(|process| process.exit),
            activity,
        }
    }
}

/// The processes to wait for, without duplicates, by id and name.
fn watched(given: &[String], call: &Call) -> Result<Vec<(ProcessId, String)>, ToolError> {
    if given.is_empty() || given.len() > WATCHED {
        let why = format_args!("takes 1 to {WATCHED} processes, not {}", given.len());
        return Err(ToolError::invalid("process_ids", why));
    }
    let mut known = HashSet::new();
    let mut watched = Vec::new();
    for id in given {
        let Process { id, name, .. } = find(call, id)?;
        if call.caller.process() == Some(&id) {
            let why = "includes yourself, and you are working while you wait; name other processes";
            return Err(ToolError::invalid("process_ids", why));
        }
        if known.insert(id.clone()) {
            watched.push((id, name));
        }
    }
    Ok(watched)
}
