//! The callers of tools.

use schemars::JsonSchema;
use serde::Serialize;

use crate::host::Host;
use patterm_panes::process::ProcessId;
use patterm_wire::events::Actor;

/// The peer of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A caller without an identity: a script, or a client outside patterm.
    External,
    /// A person, through the TUI or a verb; has the rights of an external caller.
    Person,
    /// An HTTP client, by the name of its token; has the rights of an external caller.
    Token(String),
    /// The agent that runs in this process entry.
    Process(ProcessId),
    /// A caller without a token in an agent's pane, or in a pane that the agent started: it
    /// has the rights of this process, which becomes the parent of everything it starts.
    Inside(ProcessId),
    /// A caller in another project's pane that may be an agent; has the rights of an
    /// external caller, but the processes it starts do not count as a person's.
    Elsewhere,
}

/// A caller's place in the tree of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An agent with no agent above it.
    Orchestrator,
    /// An agent that another agent started.
    SubAgent,
    /// Not an agent of this project.
    External,
}

impl Caller {
    /// The process it runs in; `None` for outside callers.
    pub fn process(&self) -> Option<&ProcessId> {
        match self {
            Self::External | Self::Person | Self::Token(_) | Self::Elsewhere => None,
            Self::Process(id) | Self::Inside(id) => Some(id),
        }
    }

    /// The agent that identified itself with its token.
    pub fn agent(&self) -> Option<&ProcessId> {
        match self {
            Self::Process(id) => Some(id),
            _ => None,
        }
    }

    /// Who it is for the log of events.
    pub fn actor(&self) -> Actor {
        match self {
            Self::External | Self::Person => Actor::cli(),
            Self::Token(name) => Actor::Token { name: name.clone() },
            Self::Process(id) | Self::Inside(id) => Actor::agent(id.as_str()),
            Self::Elsewhere => Actor::Unidentified,
        }
    }

    /// Whether the top-level processes it starts count as a person's.
    pub(crate) fn is_human_origin(&self) -> bool {
        matches!(self, Self::External | Self::Person)
    }

    /// Whether the identity of this caller is still valid.
    pub fn is_known(&self, host: &Host) -> bool {
        let known = |id| host.identities.has(id) && host.panes.processes.get(id).is_some();
        match self {
            Self::Token(name) => host.web.knows(name),
            Self::Inside(id) => host.panes.processes.get(id).is_some(),
            _ => self.process().is_none_or(known),
        }
    }

    /// The caller's place in the tree of agents.
    pub fn role(&self, host: &Host) -> Role {
        match self.process().and_then(|id| host.panes.processes.get(id)) {
            None => Role::External,
            Some(process) if host.panes.processes.agent_above(&process).is_some() => Role::SubAgent,
            Some(_) => Role::Orchestrator,
        }
    }
}
