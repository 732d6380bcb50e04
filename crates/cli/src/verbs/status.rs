//! `patterm status`: everything about one process.

use clap::Args;
use patterm_wire::tools::{GetProcessStatus, ProcessRef};
use serde_json::Value;

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Show everything known about a process
#[derive(Debug, Args)]
pub(crate) struct StatusVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StatusVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let reply = client.query::<GetProcessStatus>(&ProcessRef { process_id })?;
        match self.json {
            true => print_json(&reply.json)?,
            false => print(&lines(&reply.json, "")),
        }
        Ok(())
    }
}

/// A value as lines of `name: value`.
fn lines(value: &Value, prefix: &str) -> String {
    let Some(members) = value.as_object() else { return String::new() };
    let mut text = Vec::new();
    for (name, value) in members {
        match value {
            Value::Object(_) => text.push(lines(value, &format!("{prefix}{name}."))),
            Value::String(value) => text.push(format!("{prefix}{name}: {}", one_line(value))),
            other => text.push(format!("{prefix}{name}: {}", one_line(&other.to_string()))),
        }
    }
    text.join("\n")
}
