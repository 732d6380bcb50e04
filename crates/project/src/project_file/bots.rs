//! The `[bots]` table: MCP servers inside the containers of bots.

use std::path::PathBuf;

use serde::Deserialize;

use super::description::Description;
use super::schema::{COMMAND, Schema, SchemaKey, key, required};
use super::servers::{EngineDefinition, engine};
use super::visible::{command_line, visible};

/// The keys of `[bots]`.
pub(super) const SCHEMA: Schema = Schema::Groups(&[engine::KEYS, KEYS]);

const KEYS: &[SchemaKey] = &[
    required(
        "command",
        COMMAND,
        "The server inside the containers: the program and its arguments.",
    ),
    key(
        "owner_label",
        Schema::Text,
        "The label that says which bot owns a container; `patterm.bot` by default.",
    ),
    key(
        "allow_unlabelled",
        Schema::Flag,
        "Whether every bot may use containers without that label; false by default.",
    ),
    key("fifo_dir", Schema::Text, "The folder for containerd's FIFOs; a private one by default."),
];

/// The containers of bots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BotsDefinition {
    /// The container engine.
    #[serde(flatten)]
    pub engine: EngineDefinition,
    /// The server inside the containers.
    pub command: Vec<String>,
    /// The label that says which bot owns a container.
    #[serde(default = "default_label")]
    pub owner_label: String,
    /// Whether every bot may use containers without that label.
    #[serde(default)]
    pub allow_unlabelled: bool,
    /// The folder for containerd's FIFOs.
    pub fifo_dir: Option<PathBuf>,
}

fn default_label() -> String {
    "patterm.bot".into()
}

impl BotsDefinition {
    /// Describes the table to a person who decides whether to trust the file.
    pub(super) fn describe(&self, description: &mut Description) {
        let label = visible(&self.owner_label);
        description.heading(&format!("containers of bots, by the label {label}"));
        if self.allow_unlabelled {
            description.line("admits", "every bot to containers without that label");
        }
        description.line("run by", self.engine.describe());
        description.line("runs", command_line(&self.command));
    }
}
