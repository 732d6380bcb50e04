//! `patterm agent`: starts an agent.

use clap::Args;
use patterm_wire::tools::{SpawnAgent, SpawnAgentArgs};

use super::environment::EnvironmentArgs;
use super::spawn::{name, spawn};

/// Start an agent in a new pane and print its id
#[derive(Debug, Args)]
pub(crate) struct AgentVerb {
    /// The preset: claude, codex, opencode, gemini, or one from your settings
    preset: String,
    /// The agent's first prompt
    prompt: Option<String>,
    /// A name for the process
    #[arg(long, value_parser = name)]
    name: Option<String>,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show it on this terminal once it has started
    #[arg(short, long, conflicts_with = "json")]
    attach: bool,
}

impl AgentVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let args = SpawnAgentArgs {
            agent: self.preset,
            agent_instructions: self.prompt,
            name: self.name,
            folder_of: None,
        };
        spawn::<SpawnAgent>(&args, &self.environment, self.json, self.attach)
    }
}
