//! `wait_for_event`: waits until something happens, for callers that cannot be woken.

use patterm_wire::events::{EventPage, EventQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::event_answer::{EventAnswer, check_types, process_id, read};
use super::tool::{Call, Effect, Loading, Tool};
use super::wait_for_pattern::timeout;

pub(super) struct WaitForEvent;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Such as `agent.*`; [] for all.
    types: Vec<String>,
    /// Id or name.
    process_id: Option<String>,
    /// First seq; default: now.
    since: Option<u64>,
    /// Default 30.
    timeout_seconds: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The matching events.
    events: Vec<EventAnswer>,
    /// The `since` of the next call.
    next: u64,
    /// Events in between that are no longer kept.
    dropped: u64,
    /// The timeout passed first.
    timed_out: bool,
}

impl Tool for WaitForEvent {
    const NAME: &'static str = "wait_for_event";
    const TITLE: &'static str = "Wait for an event";
    const DESCRIPTION: &'static str = "Waits for an event of these types, for callers without a \
        pane; an agent sets a timer instead.";
    const HELP: &'static str = "A timeout is an answer, not an error: call it again with `since` \
        set to `next`, so that nothing is missed in between. get_events describes the types.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("wait until an agent is idle, blocked");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        check_types(&args.types)?;
        let time = timeout(args.timeout_seconds)?;
        let most = call.host.limits.waiters;
        let activities = &call.host.agents.activities;
        let _place = activities.waiter_permit(most).ok_or_else(|| {
            let message = format!("the limit of {most} waiting calls has been reached");
            ToolError::new(ErrorKind::Limit, message)
        })?;
        let mut last = call.host.events.last();
        let since = args.since.unwrap_or(*last.borrow() + 1);
        let process_id = process_id(&call, args.process_id);
        let mut query =
            EventQuery { since: Some(since), types: args.types, process_id, limit: None };
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        let mut dropped = 0;
        loop {
            last.borrow_and_update();
            let page = read(&call, query.clone()).await?;
            dropped += page.dropped;
            query.since = Some(page.next);
            if !page.events.is_empty() {
                return Ok(answer(page, dropped, false));
            }
            // A page of events that do not match may end before the last one.
            if page.next <= *last.borrow() {
                continue;
            }
            tokio::select! {
                changed = last.changed() => if changed.is_err() { return Ok(answer(page, dropped, true)) },
                () = &mut over => return Ok(answer(page, dropped, true)),
                () = call.ending.cancelled() => return Ok(answer(page, dropped, true)),
            }
        }
    }
}

fn answer(page: EventPage, dropped: u64, timed_out: bool) -> Answer {
    let events = page.events.into_iter().map(EventAnswer::from).collect();
    Answer { events, next: page.next, dropped, timed_out }
}
