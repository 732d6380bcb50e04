//! `patterm.toml`: what a project declares, read as data. Nothing of it takes effect here, and nothing
//! of it may before the person has trusted its content.

mod agent_shape;
mod check;
mod content;
mod definition;
mod describe;
mod fault;
mod limits;
#[cfg(test)]
mod mistakes;
mod schema;
mod server_shape;
mod servers;
mod shape;
#[cfg(test)]
mod tests;
mod trust;

pub use content::{Content, ReadError};
pub use definition::{Definition, Policy, ProjectFile, Ready, ReadyWhen, Restart};
pub use describe::{describe, visible};
pub use fault::Fault;
pub use schema::schema;
pub use servers::{BotsDefinition, Engine, HttpDefinition, Place, ServerDefinition, ToolFilter};
pub use trust::{Trust, TrustError};

use std::path::Path;

use patterm_store::state::StateDir;

/// What a project's file declares, if its content is trusted.
pub fn trusted(root: &Path, state: &StateDir) -> Option<ProjectFile> {
    let content = Content::read(root).ok().flatten()?;
    let trusted = Trust::of(root, state).holds(&content.hash);
    trusted.then(|| ProjectFile::parse(&content.text).ok()).flatten()
}
