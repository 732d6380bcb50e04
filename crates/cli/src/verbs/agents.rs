//! `patterm agents`: lists agents.

use clap::Args;
use patterm_wire::method::Empty;
use patterm_wire::tools::{AgentList, ListAgents};
use serde_json::Value;

use super::environment;
use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// List agent CLIs, with the reason for any that was not found
#[derive(Debug, Args)]
pub(crate) struct AgentsVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl AgentsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        // The CLIs are searched for in this shell's PATH, as `patterm agent` does.
        environment::pass_own(&mut client)?;
        let reply = client.query::<ListAgents>(&Empty {})?;
        if self.json {
            return print_json(&reply.read_as::<AgentList<Value>>()?.agents);
        }
        for agent in &reply.result.agents {
            let (mark, detail) = match agent.found {
                true => ("yes", &agent.program),
                false => ("no", &agent.why),
            };
            let detail = one_line(detail.as_deref().unwrap_or_default());
            print(&format!("{:<10} {mark:<4} {detail}", one_line(&agent.agent)));
        }
        if let Some(fault) = &reply.result.fault {
            print(&format!("settings: {}", one_line(fault)));
        }
        Ok(())
    }
}
