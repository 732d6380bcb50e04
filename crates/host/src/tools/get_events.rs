//! `get_events`: returns what happened in the project.

use patterm_events::MOST_EVENTS;
use patterm_wire::events::EventQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::event_answer::{EventAnswer, check_types, process_id, read};
use super::tool::{Call, Effect, Loading, Tool};

pub(super) struct GetEvents;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// First seq; default: the newest.
    since: Option<u64>,
    /// Such as `agent.*`.
    #[serde(default)]
    types: Vec<String>,
    /// Id or name.
    process_id: Option<String>,
    /// Default 100.
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    events: Vec<EventAnswer>,
    /// The `since` of the next call.
    next: u64,
    /// Events in between that are no longer kept.
    dropped: u64,
}

impl Tool for GetEvents {
    const NAME: &'static str = "get_events";
    const TITLE: &'static str = "Read events";
    const DESCRIPTION: &'static str = "What happened in the project, oldest first, and who caused \
        it.";
    const HELP: &'static str = "Events are numbered by seq, without gaps, even across restarts. \
        Call it again with `since` set to `next` to continue. A page has at most 1,000 events and \
        a megabyte. Types: process.*, agent.*, dialog.answered, input.sent, message.*, timer.*, \
        pad.*, attention.*, port.*, server.*, hook.failed, tool.called, git.*, worktree.*, project_file.*, \
        view.*, system.*. Ignore types that you do not know. Of input, only its length and \
        position are recorded. To wait for an event, use wait_for_event.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::OnSearch("history: what happened, who did it");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let Args { since, types, process_id: process, limit } = args;
        if limit.is_some_and(|limit| !(1..=MOST_EVENTS).contains(&limit)) {
            return Err(ToolError::invalid("limit", format_args!("takes 1 to {MOST_EVENTS}")));
        }
        check_types(&types)?;
        let process_id = process_id(&call, process);
        let page = read(&call, EventQuery { since, types, process_id, limit }).await?;
        let events = page.events.into_iter().map(EventAnswer::from).collect();
        Ok(Answer { events, next: page.next, dropped: page.dropped })
    }
}
