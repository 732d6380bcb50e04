//! Candidates for completions that are not in the definitions of verbs: processes, presets, shared servers,
//! hooks, scratchpads, projects. They come from a running server or from disk, at once or not at all.

use std::path::Path;
use std::time::Duration;

use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_project::project_file;
use patterm_store::state::StateDir;
use patterm_wire::Method;
use patterm_wire::follow::ProcessKind;
use patterm_wire::hooks::{HookInfo, ListHooks};
use patterm_wire::method::Empty;
use patterm_wire::servers::{Servers, ServersRequest};
use patterm_wire::tools::{ListAgents, ListPads, ListProcesses};

use crate::client::Client;
use crate::start;

/// A server that takes longer is busy, and the person at the prompt keeps typing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A possible word, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) value: String,
    pub(crate) help: String,
}

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateKind {
    /// Processes.
    Processes,
    /// Processes that are agents.
    Agents,
    /// Processes, and those that the project file declares.
    ProcessesAndDeclared,
    /// Processes, and projects with a server.
    ProcessesAndProjects,
    /// Declared processes and groups.
    DeclaredAndGroups,
    /// Presets of agents.
    Presets,
    /// Scratchpads.
    Pads,
    /// Shared MCP servers.
    Servers,
    /// Hooks.
    Hooks,
}

impl CandidateKind {
    /// All candidates in the project of the current folder, or of this folder. Queries that fail are left out.
    pub(crate) fn candidates(self, folder: Option<&Path>) -> Vec<Candidate> {
        if folder.is_some_and(|folder| std::env::set_current_dir(folder).is_err()) {
            return Vec::new();
        }
        match self {
            Self::Processes => processes(|_| true),
            Self::Agents => processes(|kind| *kind == ProcessKind::Agent),
            Self::ProcessesAndDeclared => {
                let mut all = processes(|_| true);
                for declared in declared(false) {
                    if !all.iter().any(|known| known.value == declared.value) {
                        all.push(declared);
                    }
                }
                all
            }
            Self::ProcessesAndProjects => {
                let mut all = processes(|_| true);
                all.extend(projects());
                all
            }
            Self::DeclaredAndGroups => declared(true),
            Self::Presets => presets(),
            Self::Pads => pads(),
            Self::Servers => servers(),
            Self::Hooks => hooks(),
        }
    }
}

/// Queries the project's server, or its state on disk.
fn ask<M: Method>(params: &M::Params) -> Option<M::Result> {
    let mut client = Client::connect_to_read_within(PATIENCE).ok()?;
    client.call::<M>(params).ok().map(|reply| reply.result)
}

/// Ids and names; a name that several processes have is left out.
fn processes(wanted: impl Fn(&ProcessKind) -> bool) -> Vec<Candidate> {
    let list = ask::<ListProcesses>(&Empty {}).map(|list| list.processes).unwrap_or_default();
    let list: Vec<_> = list.into_iter().filter(|process| wanted(&process.kind)).collect();
    let mut all = Vec::new();
    for process in &list {
        let help = format!("{}, {}", process.name, process.status.name());
        all.push(Candidate { value: process.process_id.clone(), help });
        let same_name = list.iter().filter(|other| other.name == process.name).count();
        if same_name == 1 {
            let help = format!("{}, {}", process.process_id, process.status.name());
            all.push(Candidate { value: process.name.clone(), help });
        }
    }
    all
}

/// What the trusted project file declares.
fn declared(groups: bool) -> Vec<Candidate> {
    let read = || {
        let project = start::project_here().ok()?;
        let state = StateDir::from_env(project.key()).ok()?;
        project_file::trusted(project.root(), &state)
    };
    let Some(file) = read() else { return Vec::new() };
    let declared = file.processes.keys().map(|name| (name, "declared".to_owned()));
    let mut all: Vec<_> = declared.collect();
    if groups {
        all.extend(file.groups.iter().map(|(name, members)| (name, members.join(", "))));
    }
    all.into_iter().map(|(name, help)| Candidate { value: name.clone(), help }).collect()
}

/// The names of the folders of projects with a server.
fn projects() -> Vec<Candidate> {
    let named = |entry: patterm_wire::requests::ServerEntry| {
        let value = entry.project.file_name()?.to_string_lossy().into_owned();
        Some(Candidate { value, help: entry.project.to_string_lossy().into_owned() })
    };
    registry::list(&RuntimeDir::candidates(None)).into_iter().filter_map(named).collect()
}

/// The presets of agents.
fn presets() -> Vec<Candidate> {
    let list = ask::<ListAgents>(&Empty {}).map(|list| list.agents).unwrap_or_default();
    list.into_iter().map(|agent| Candidate { value: agent.agent, help: agent.title }).collect()
}

fn pads() -> Vec<Candidate> {
    let list = ask::<ListPads>(&Empty {}).map(|list| list.scratchpads).unwrap_or_default();
    list.into_iter().map(|pad| Candidate { value: pad.name, help: pad.changed_by }).collect()
}

fn hooks() -> Vec<Candidate> {
    let list = ask::<ListHooks>(&Empty {}).map(|list| list.hooks).unwrap_or_default();
    let described = |hook: HookInfo| Candidate { value: hook.name, help: hook.on.join(", ") };
    let mut all: Vec<_> = list.into_iter().map(described).collect();
    // The settings and the project file may each have a hook of this name.
    all.sort_by(|a, b| a.value.cmp(&b.value));
    all.dedup_by(|a, b| a.value == b.value);
    all
}

fn servers() -> Vec<Candidate> {
    let list = ask::<Servers>(&ServersRequest::default()).map(|list| list.servers);
    let described = |server: patterm_wire::servers::ServerInfo| Candidate {
        value: server.name,
        help: format!("{}, {}", server.state, server.place),
    };
    let mut all: Vec<_> = list.unwrap_or_default().into_iter().map(described).collect();
    all.dedup_by(|a, b| a.value == b.value);
    all
}
