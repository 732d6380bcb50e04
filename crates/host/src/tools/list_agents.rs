//! `list_agents`: the presets for `spawn_agent`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::tool::{Call, Effect, Loading, Tool};
use patterm_agents::AgentError;
use patterm_agents::presets::{Known, Origin, find_program};

pub(super) struct ListAgents;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The presets, by name.
    agents: Vec<AgentAnswer>,
    /// The error in the user's settings, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct AgentAnswer {
    /// The name for spawn_agent.
    agent: String,
    /// Its title.
    title: String,
    /// Whether it can be started.
    found: bool,
    /// The path of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<PathBuf>,
    /// Why it cannot be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// `built in`, or the file that defines it: the user's settings or the project file.
    origin: String,
    /// Whether an ended one can resume its conversation.
    resumes: bool,
}

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "Agents that can be started";
    const DESCRIPTION: &'static str = "Lists the presets for spawn_agent, and why any cannot be \
        started.";
    const HELP: &'static str = "Change and add presets in the user's settings and in patterm.toml, \
        under [agents.NAME].";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading =
        Loading::OnSearch("which agents (claude, codex, gemini) can be started");
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        let catalogue = call.host.agents.presets.catalogue();
        let around = call.environment();
        let path = around.get("PATH").unwrap_or_default();
        let describe = |(agent, known): (&String, &Known)| {
            let origin = match &known.origin {
                Origin::BuiltIn => "built in".to_owned(),
                Origin::Settings(path) | Origin::Project(path) => path.display().to_string(),
            };
            let root = call.host.project.root();
            let (title, resumes, place) = match &known.preset {
                Ok(preset) => {
                    let place = find_program(&preset.program, path, root);
                    (preset.title.clone(), preset.resume.is_some(), place)
                }
                Err(why) => {
                    let invalid = AgentError::BadPreset { name: agent.clone(), why: why.clone() };
                    (agent.clone(), false, Err(invalid.to_string()))
                }
            };
            let found = place.is_ok();
            let (program, why) = match place {
                Ok(program) => (Some(program), None),
                Err(why) => (None, Some(why)),
            };
            AgentAnswer { agent: agent.clone(), title, found, program, why, origin, resumes }
        };
        let agents = catalogue.presets.iter().map(describe).collect();
        Ok(Answer { agents, fault: catalogue.fault.clone() })
    }
}
