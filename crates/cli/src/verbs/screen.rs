//! `patterm screen`: the screen of a process.

use clap::Args;
use patterm_wire::tools::{GetScreen, ProcessRef};

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Print the screen of a process
#[derive(Debug, Args)]
pub(crate) struct ScreenVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ScreenVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let reply = client.query::<GetScreen>(&ProcessRef { process_id })?;
        if self.json {
            return print_json(&reply.json);
        }
        let rows: Vec<_> = reply.result.rows.iter().map(|row| one_line(row)).collect();
        print(rows.join("\n").trim_end());
        Ok(())
    }
}
