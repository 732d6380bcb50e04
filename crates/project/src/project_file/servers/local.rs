//! Servers that are programs on this machine.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::Location;
use super::settings::{BackendSettings, Kind, Section};
use crate::project_file::description::Description;
use crate::project_file::schema::{COMMAND, Schema, key};
use crate::project_file::visible::{command_line, visible};

pub(super) const KIND: Kind = Kind {
    selector: "command",
    keys: &[
        key("command", COMMAND, "The program and its arguments. They are not passed to a shell."),
        key("env", Schema::Strings, "Environment variables; `${NAME}` inserts one of your own."),
        key("directory", Schema::Text, "The working directory, relative to the project."),
    ],
    accepts: &[],
    read,
};

/// A program on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LocalSettings {
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The working directory, relative to the project.
    pub directory: Option<PathBuf>,
}

fn read(section: &mut Section<'_, '_>) -> Option<Location> {
    let settings: LocalSettings = section.read()?;
    section.check_program(&settings.command, ", `image` or `url`")?;
    Some(Location::Local(settings))
}

impl fmt::Display for LocalSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command.join(" "))
    }
}

impl BackendSettings for LocalSettings {
    fn describe(&self, description: &mut Description) {
        description.line("runs", command_line(&self.command));
        if let Some(directory) = &self.directory {
            description.line("in", visible(&directory.to_string_lossy()));
        }
    }
}
