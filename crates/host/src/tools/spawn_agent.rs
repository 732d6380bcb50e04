//! `spawn_agent`: starts a sub-agent under the caller.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::error_kinds::text_argument;
use super::process::{Started, check_name, folder, label};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_agents::NewAgent;

pub(super) struct SpawnAgent;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Preset: claude, codex, opencode, gemini or one from list_agents.
    agent: String,
    /// Its task, its first turn.
    agent_instructions: Option<String>,
    /// Default: the preset's.
    name: Option<String>,
}

impl Tool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const TITLE: &'static str = "Start a sub-agent";
    const DESCRIPTION: &'static str = "Starts another coding agent under you with patterm's \
        tools and its own identity; agent_instructions is its first turn. The only right way to \
        start an agent: from a shell it would be a stray process. It knows nothing of your \
        conversation, so say all it needs and that it should report with send_message. Then set \
        timer_fire_when_idle_any or _all on it and end your turn. Whoever spawns closes: \
        close_process.";
    const HELP: &'static str = "It returns as soon as the CLI runs; whether the instructions \
        were taken is in get_project_status under messages. An agent that waits for a permission \
        shows as blocked in list_processes: request_human_attention, or answer with send_input \
        if you may. Number and depth of agents have ceilings (limit).";
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
        let new = NewAgent {
            preset: args.agent,
            name,
            parent_id: call.caller.process().cloned(),
            instructions,
            working_dir: folder(&call, None),
        };
        call.detached(|host| async move { Ok(host.agents.spawn(new).await?) }).await.map(Into::into)
    }
}
