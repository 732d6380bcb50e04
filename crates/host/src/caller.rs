//! Who calls a tool.

use schemars::JsonSchema;
use serde::Serialize;

use crate::host::Host;
use patterm_panes::process::ProcessId;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Someone without an identity: a script, a client outside patterm.
    External,
    /// The person, by the TUI or a verb; may do what an external caller may.
    Person,
    /// A client over HTTP, by the name of its token; may do what an external caller may.
    Token(String),
    /// The agent that runs in this process entry.
    Process(ProcessId),
    /// A caller without a token in an agent's pane, or in a pane that the agent started: it may do what
    /// this process may, and what it starts becomes a child of it.
    Inside(ProcessId),
    /// A caller in another project's pane that may be an agent; may do what an external caller may,
    /// but what it starts does not count as a person's.
    Elsewhere,
}

/// A caller's place among the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An agent with no agent above it.
    Orchestrator,
    /// An agent that another agent started.
    SubAgent,
    /// No agent of this project.
    External,
}

impl Caller {
    /// The process it runs in; `None` for those outside.
    pub fn process(&self) -> Option<&ProcessId> {
        match self {
            Self::External | Self::Person | Self::Token(_) | Self::Elsewhere => None,
            Self::Process(id) | Self::Inside(id) => Some(id),
        }
    }

    /// The agent that proved by its token that it is one.
    pub fn agent(&self) -> Option<&ProcessId> {
        match self {
            Self::Process(id) => Some(id),
            _ => None,
        }
    }

    /// Whether what it starts at the top of the project counts as a person's.
    pub(crate) fn is_human_origin(&self) -> bool {
        matches!(self, Self::External | Self::Person)
    }

    /// Whether the identity this caller came with is still good.
    pub fn is_known(&self, host: &Host) -> bool {
        let known = |id| host.identities.has(id) && host.panes.processes.get(id).is_some();
        match self {
            Self::Token(name) => host.web.knows(name),
            Self::Inside(id) => host.panes.processes.get(id).is_some(),
            _ => self.process().is_none_or(known),
        }
    }

    /// The caller's place among the agents.
    pub fn role(&self, host: &Host) -> Role {
        match self.process().and_then(|id| host.panes.processes.get(id)) {
            None => Role::External,
            Some(process) if host.panes.processes.agent_above(&process).is_some() => Role::SubAgent,
            Some(_) => Role::Orchestrator,
        }
    }
}
