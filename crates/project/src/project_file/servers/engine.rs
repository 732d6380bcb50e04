//! The container engine of a server, or of the containers of bots.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::project_file::schema::{Schema, SchemaKey, key};
use crate::project_file::visible::visible;

/// The keys of an engine.
pub(in crate::project_file) const KEYS: &[SchemaKey] = &[
    key(
        "engine",
        Schema::Choice(&["docker", "podman", "containerd"]),
        "The container engine; `docker` by default.",
    ),
    key(
        "socket",
        Schema::Text,
        "The engine's socket, if it is not the default one (for Docker, also not `DOCKER_HOST`).",
    ),
    key("namespace", Schema::Text, "containerd's namespace; `default` by default."),
];

/// A container engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// Docker.
    #[default]
    Docker,
    /// Podman.
    Podman,
    /// containerd.
    Containerd,
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
        })
    }
}

/// A container engine, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EngineDefinition {
    /// The engine.
    #[serde(default, rename = "engine")]
    pub name: EngineName,
    /// Its socket, if it is not the default one.
    pub socket: Option<PathBuf>,
    /// containerd's namespace.
    pub namespace: Option<String>,
}

impl EngineDefinition {
    /// The engine for a person who decides whether to trust the file.
    pub(in crate::project_file) fn describe(&self) -> String {
        match &self.socket {
            Some(socket) => format!("{} at {}", self.name, visible(&socket.to_string_lossy())),
            None => self.name.to_string(),
        }
    }
}
