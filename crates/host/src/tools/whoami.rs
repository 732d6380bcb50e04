//! `whoami`: the identity of the caller, the project and the tools.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ToolError;
use super::tool::{Call, Effect, Loading, Tool};
use crate::VERSION;
use crate::caller::{Caller, Role};
use patterm_panes::process::ProcessId;

pub(super) struct Whoami;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// Who you are.
    caller: CallerAnswer,
    /// The project you work in.
    project: ProjectAnswer,
    /// The patterm server.
    server: ServerAnswer,
    /// The names of patterm's tools.
    tools: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CallerAnswer {
    /// Your own process id; absent for an external caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<ProcessId>,
    /// Your name in the tree of processes; for an HTTP client, the name of its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// `orchestrator`: no agent is above you. `sub-agent`: another agent started you.
    /// `external`: you are not an agent of this project.
    role: Role,
    /// The process that started you.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<ProcessId>,
}

#[derive(Serialize, JsonSchema)]
struct ProjectAnswer {
    /// The project's folder.
    path: PathBuf,
    /// Its short key.
    key: String,
}

#[derive(Serialize, JsonSchema)]
struct ServerAnswer {
    /// Always `patterm`.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// Its process id.
    pid: u32,
    /// When it started, in seconds since 1970.
    started_at: u64,
}

impl CallerAnswer {
    pub(super) fn of(call: &Call) -> Self {
        let Call { host, caller, .. } = call;
        let process = caller.process().and_then(|id| host.panes.processes.get(id));
        Self {
            role: caller.role(host),
            process_id: process.as_ref().map(|p| p.id.clone()),
            name: match caller {
                Caller::Token(name) => Some(name.clone()),
                _ => process.as_ref().map(|p| p.name.clone()),
            },
            parent_id: process.and_then(|p| p.parent_id),
        }
    }
}

impl Tool for Whoami {
    const NAME: &'static str = "whoami";
    const TITLE: &'static str = "Who am I";
    const DESCRIPTION: &'static str = "Who you are (process id, name, role, parent), the project, \
        the server and the tool names. Call it first.";
    const HELP: &'static str = "Your identity comes from how patterm started you, never from an \
        argument. An orchestrator has no agent above it. A sub-agent reports to the agent that \
        started it, its parent_id. An external caller is a person, a script, or a client that \
        patterm did not start; it may do anything, and the processes it starts are at the top level.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(_args: Args, call: Call) -> Result<Answer, ToolError> {
        let host = &call.host;
        Ok(Answer {
            caller: CallerAnswer::of(&call),
            project: ProjectAnswer {
                path: host.project.root().to_owned(),
                key: host.project.key().to_owned(),
            },
            server: ServerAnswer {
                name: "patterm",
                version: VERSION,
                pid: std::process::id(),
                started_at: host.started_at,
            },
            tools: call.tools.names().map(str::to_owned).collect(),
        })
    }
}
