//! `patterm call`: calls any tool.

use clap::Args;
use patterm_host::tools::Registry;
use serde_json::{Value, json};

use crate::client::Client;
use crate::print::print_json_text;
use crate::start;

/// Call any tool and print its result
#[derive(Debug, Args)]
pub(crate) struct CallVerb {
    /// The tool's name
    tool: String,
    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", value_parser = json_object)]
    arguments: Option<Value>,
}

impl CallVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let arguments = self.arguments.unwrap_or_else(|| json!({}));
        // A tool that only reads starts no server.
        let from_disk = Registry::standard().only_reads(&self.tool)
            && !start::is_served(&start::project_here()?)?;
        let mut client = match from_disk {
            true => Client::connect_to_read()?,
            false => Client::connect_as_program()?,
        };
        let result = client.call_tool(&self.tool, &arguments)?;
        print_json_text(&serde_json::to_string_pretty(&result)?);
        Ok(())
    }
}

fn json_object(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    match value.is_object() {
        true => Ok(value),
        false => Err("must be a JSON object, for example {\"a\": 1}".into()),
    }
}
