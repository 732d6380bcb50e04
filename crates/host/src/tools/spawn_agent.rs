//! `spawn_agent`: starts a sub-agent under the caller.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Started, folder, label};
use super::tool::{Call, Effect, Tool};
use crate::agents::NewAgent;
use crate::delivery::check_text;

pub(super) struct SpawnAgent;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The preset: claude, codex, opencode, gemini, or one of the user's; list_agents names all.
    agent: String,
    /// What it is to do: its first turn, submitted once its CLI is ready.
    agent_instructions: Option<String>,
    /// Its label; the preset's name by default.
    name: Option<String>,
}

impl Tool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const TITLE: &'static str = "Start a sub-agent";
    const DESCRIPTION: &'static str = "Starts another coding agent under you, with patterm's tools \
        and an identity of its own, and gives it agent_instructions as its first turn. This is the \
        only right way to start an agent: from a shell or another tool it would be a stray process \
        without tools. It knows nothing of your conversation: say in the instructions all it needs, \
        and that it should report with send_message to you. Then set timer_fire_when_idle_any or \
        _all on it and end your turn. Whoever spawns closes: call close_process when it is done.";
    const HELP: &'static str = "It returns as soon as the CLI runs; whether the instructions were \
        taken is in get_project_status under messages. An agent that waits for a permission shows as \
        blocked in list_processes: request_human_attention, or answer with send_input if you may. \
        Number and depth of agents have ceilings (limit).";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        let name = args.name.as_deref().map(label).transpose()?.map(str::to_owned);
        let instructions = args.agent_instructions.as_deref().filter(|text| !text.is_empty());
        let instructions =
            instructions.map(|text| check_text("agent_instructions", text)).transpose()?;
        let new = NewAgent {
            preset: args.agent,
            name,
            parent_id: call.caller.process().cloned(),
            instructions,
            working_dir: folder(&call, None),
        };
        call.detached(|host| async move { host.spawn_agent(new).await }).await.map(Into::into)
    }
}
