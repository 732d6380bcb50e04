//! The tool that lists agents.

use serde::{Deserialize, Serialize};

use super::tools;
use crate::method::Empty;

tools! {
    /// Lists the agents that can be started.
    ListAgents = "list_agents": Empty => AgentList;
}

/// The presets of agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentList<A = AgentInfo> {
    /// The presets, by name.
    pub agents: Vec<A>,
    /// What is wrong with the user's settings.
    #[serde(default)]
    pub fault: Option<String>,
}

/// An agent that can be started, or the reason why it cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// The preset's name.
    pub agent: String,
    /// Its name for people.
    #[serde(default)]
    pub title: String,
    /// Whether its CLI was found.
    pub found: bool,
    /// Where its CLI is.
    #[serde(default)]
    pub program: Option<String>,
    /// Why it cannot be started.
    #[serde(default)]
    pub why: Option<String>,
}
