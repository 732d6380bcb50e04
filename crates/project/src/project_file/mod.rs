//! `patterm.toml`, parsed into data. Nothing takes effect here, and nothing may take effect before a
//! person has trusted the content.

mod agent_schema;
mod bots;
mod check;
mod command;
mod content;
mod definition;
mod describe;
mod description;
mod env_file;
mod fault;
mod file_schema;
mod groups;
mod hooks;
mod http;
mod json_schema;
mod limits;
#[cfg(test)]
mod mistakes_tests;
mod name;
mod probe;
mod ready;
#[cfg(test)]
mod ready_tests;
mod schema;
mod select;
mod servers;
mod settings_problems;
mod stop;
#[cfg(test)]
mod tests;
mod trust;
mod visible;

pub use bots::BotsDefinition;
pub use content::{Content, ReadError};
pub use definition::{Definition, Policy, ProjectFile, Restart};
pub use describe::describe;
pub use fault::Fault;
pub use hooks::{
    HookAction, HookArgument, HookDefinition, HookRequest, HookUrl, Placeholder, Rate,
};
pub use http::HttpDefinition;
pub use json_schema::schema;
pub use name::{NameFault, name_fault};
pub use probe::{Probe, ProbeUrl};
pub use ready::{Healthy, Ready, ReadyWhen};
pub use select::UnknownName;
pub use servers::{
    ContainerSettings, EngineDefinition, EngineName, ImageSettings, LocalSettings, Location,
    MountDefinition, RemoteSettings, ServerDefinition, ToolFilter,
};
pub use settings_problems::SettingsProblems;
pub use stop::Stop;
pub use trust::{Trust, TrustError};
pub use visible::visible;

use std::path::Path;

use patterm_store::state::StateDir;

/// A project's file, if its content is trusted.
pub fn trusted(root: &Path, state: &StateDir) -> Option<ProjectFile> {
    let content = Content::read(root).ok().flatten()?;
    let trusted = Trust::of(root, state).holds(&content.hash);
    trusted.then(|| ProjectFile::parse(&content.text).ok()).flatten()
}
