//! Servers that are started inside a running container.

use std::fmt;

use serde::Deserialize;

use super::Location;
use super::engine::EngineDefinition;
use super::settings::{BackendSettings, Kind, Section};
use crate::project_file::description::Description;
use crate::project_file::schema::{Schema, key};
use crate::project_file::visible::{command_line, visible};

pub(super) const KIND: Kind = Kind {
    selector: "container",
    keys: &[key("container", Schema::Text, "A running container, in which the server starts.")],
    accepts: &["command", "env", "engine", "socket", "namespace"],
    read,
};

/// A program inside a running container.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ContainerSettings {
    /// The container engine.
    #[serde(flatten)]
    pub engine: EngineDefinition,
    /// The container's name or id.
    pub container: String,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
}

fn read(section: &mut Section<'_, '_>) -> Option<Location> {
    let settings: ContainerSettings = section.read()?;
    section.check_program(&settings.command, "")?;
    Some(Location::Container(settings))
}

impl fmt::Display for ContainerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} {}", self.command.join(" "), self.engine.name, self.container)
    }
}

impl BackendSettings for ContainerSettings {
    fn describe(&self, description: &mut Description) {
        description.line("runs", command_line(&self.command));
        let container = visible(&self.container);
        description.line("inside", format!("{container} ({})", self.engine.describe()));
    }
}
