//! `spawn_agent`: starts a sub-agent below the caller.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::error_kinds::text_argument;
use super::process::{Started, check_name, current_folder, find, folder, label};
use super::tool::{Call, Effect, Loading, Tool};
use crate::caller::Caller;
use patterm_agents::NewAgent;

pub(super) struct SpawnAgent;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Preset: claude, codex, opencode, gemini or one from list_agents.
    agent: String,
    /// Its task, as its first turn.
    agent_instructions: Option<String>,
    /// Default: the preset's name.
    name: Option<String>,
    /// Start in the folder of this process.
    folder_of: Option<String>,
}

impl Tool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const TITLE: &'static str = "Start a sub-agent";
    const DESCRIPTION: &'static str = "Starts another coding agent under you, with patterm's \
        tools; agent_instructions is its first turn. Always start agents this way, never from a \
        shell. It does not know your conversation: tell it everything it needs, and to report with \
        send_message. Then set timer_fire_when_idle_any or _all on it and end your turn. When \
        done: close_process.";
    const HELP: &'static str = "It returns as soon as the CLI is running; `messages` in get_project_status says \
        whether the agent accepted its instructions. An agent that waits for permission is \
        blocked in list_processes: use request_human_attention, or answer with send_input if you \
        are allowed to. The number and depth of agents are limited (limit).";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        let name = args.name.as_deref().map(label).transpose()?.map(str::to_owned);
        check_name(&call, name.as_deref().unwrap_or(&args.agent), None, Some(&args.agent))?;
        let instructions = args.agent_instructions.as_deref().filter(|text| !text.is_empty());
        let instructions =
            instructions.map(|text| text_argument("agent_instructions", text)).transpose()?;
        let beside = args.folder_of.map(|process| find(&call, &process)).transpose()?;
        let new = NewAgent {
            preset: args.agent,
            name,
            parent_id: call.caller.process().cloned(),
            asked_by: (call.caller == Caller::Person).then(|| "human".to_owned()),
            instructions,
            working_dir: beside
                .and_then(|process| current_folder(&call, &process))
                .unwrap_or_else(|| folder(&call, None)),
            environment: call.own_environment(),
            set_variables: call.set_variables(),
        };
        call.detached(|host| async move { Ok(host.agents.spawn(new).await?) }).await.map(Into::into)
    }
}
