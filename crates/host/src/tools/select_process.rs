//! `select_process`: brings a process to the front in every attached view, or marks it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::process::{find, may_act_on};
use super::tool::{Call, Effect, Loading, Tool};
use crate::typing::drafts;

pub(super) struct SelectProcess;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// `shown`: a person sees it now. `marked`: it is only marked, because a person is typing or
    /// because it is not yours. `nobody_watching`: no view is attached. `unconfirmed`: a view is
    /// attached but has not responded.
    outcome: SelectionOutcome,
    /// How many views show it.
    #[serde(skip_serializing_if = "is_zero")]
    shown_in: usize,
    /// How many views only marked it.
    #[serde(skip_serializing_if = "is_zero")]
    marked_in: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SelectionOutcome {
    Shown,
    Marked,
    NobodyWatching,
    Unconfirmed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Tool for SelectProcess {
    const NAME: &'static str = "select_process";
    const TITLE: &'static str = "Show a process";
    const DESCRIPTION: &'static str = "Brings a process of yours to the front in every attached \
        view; another is only marked.";
    const HELP: &'static str = "To call a person, use request_human_attention; this only changes \
        what the views show. If a person typed within the last 5 seconds, or has unfinished text in \
        a prompt, the focus does not move. The answer says `shown`, `marked`, or that nobody is \
        watching.";
    const EFFECT: Effect = Effect::Sets;
    const LOADING: Loading = Loading::OnSearch("show a process to the person");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = find(&call, &args.process_id)?;
        let mark_only = !may_act_on(&call, &process);
        let drafts = drafts(&call.host.panes, &call.host.agents.activities);
        let views = call.host.selections.ask(&process.id, mark_only, drafts).await;
        let outcome = match views {
            _ if views.shown > 0 => SelectionOutcome::Shown,
            _ if views.marked > 0 => SelectionOutcome::Marked,
            _ if views.unconfirmed > 0 => SelectionOutcome::Unconfirmed,
            _ => SelectionOutcome::NobodyWatching,
        };
        Ok(Answer { outcome, shown_in: views.shown, marked_in: views.marked })
    }
}
