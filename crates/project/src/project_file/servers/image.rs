//! Servers that run in a container of their own.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::Location;
use super::engine::EngineDefinition;
use super::settings::{BackendSettings, Kind, Section};
use crate::project_file::description::Description;
use crate::project_file::schema::{COUNT, STRINGS, Schema, key};
use crate::project_file::visible::{command_line, visible};

pub(super) const KIND: Kind = Kind {
    selector: "image",
    keys: &[
        key("image", Schema::Text, "An image; the server runs in a new container of it."),
        key("network", Schema::Flag, "Whether that container has a network; false by default."),
        key("memory_mb", COUNT, "The memory limit of that container in MiB; 1024 by default."),
        key("processes", COUNT, "The process limit of that container; 256 by default."),
        key(
            "mounts",
            STRINGS,
            "Folders to mount in that container, such as `./data:/data`; append `:rw` to make one \
             writable.",
        ),
    ],
    accepts: &["command", "env", "engine", "socket", "namespace"],
    read,
};

/// A container of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ImageSettings {
    /// The container engine.
    #[serde(flatten)]
    pub engine: EngineDefinition,
    /// The image.
    pub image: String,
    /// The program and its arguments; the image's default if empty.
    #[serde(default)]
    pub command: Vec<String>,
    /// Whether the container has a network.
    #[serde(default)]
    pub network: bool,
    /// Its memory limit in MiB.
    pub memory_mb: Option<u64>,
    /// Its process limit.
    pub processes: Option<u64>,
    /// Its mounts.
    #[serde(skip)]
    pub mounts: Vec<MountDefinition>,
}

/// A folder or file of this machine in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountDefinition {
    /// The path on this machine; it may be relative to the project.
    pub source: PathBuf,
    /// The absolute path in the container.
    pub target: PathBuf,
    /// Whether it is writable.
    pub writable: bool,
}

/// The mounts, before they are parsed.
#[derive(Deserialize)]
struct RawMounts {
    #[serde(default)]
    mounts: Vec<String>,
}

fn read(section: &mut Section<'_, '_>) -> Option<Location> {
    let mut settings: ImageSettings = section.read()?;
    let RawMounts { mounts } = section.read()?;
    section.check_words(&settings.command);
    for (n, text) in mounts.iter().enumerate() {
        match MountDefinition::parse(text) {
            Some(mount) => settings.mounts.push(mount),
            None => {
                let message = format!("`{text}` is not a mount; write it like `./data:/data:rw`");
                section.fault(&format!("mounts[{n}]"), message);
            }
        }
    }
    Some(Location::Image(settings))
}

impl MountDefinition {
    /// Parses `source:target`, with `:rw` if it is writable or `:ro` if it is not, the default.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (source, target) = (parts.next()?, parts.next()?);
        let writable = match parts.next() {
            Some("rw") => true,
            Some("ro") | None => false,
            Some(_) => return None,
        };
        let is_valid = !source.is_empty() && target.starts_with('/') && parts.next().is_none();
        is_valid.then(|| Self { source: source.into(), target: target.into(), writable })
    }
}

impl fmt::Display for MountDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.writable { ":rw" } else { "" };
        write!(f, "{}:{}{mode}", self.source.display(), self.target.display())
    }
}

impl fmt::Display for ImageSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} image {}", self.engine.name, self.image)
    }
}

impl BackendSettings for ImageSettings {
    fn describe(&self, description: &mut Description) {
        let image = visible(&self.image);
        description.line("image", format!("{image} ({})", self.engine.describe()));
        if !self.command.is_empty() {
            description.line("runs", command_line(&self.command));
        }
        if self.network {
            description.line("with", "a network");
        }
        for mount in &self.mounts {
            description.line("sees", visible(&mount.to_string()));
        }
    }
}
