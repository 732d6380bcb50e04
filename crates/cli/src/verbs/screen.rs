//! `patterm screen`: the screen of a process.

use clap::Args;
use patterm_wire::tools::{GetScreen, ScreenArgs};

use super::at::At;
use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Print the screen of a process
#[derive(Debug, Args)]
pub(crate) struct ScreenVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// The screen as it was then: a time (09:12, 10m ago as 10m, 2026-11-16T09:12:03Z) or an offset in its output
    #[arg(long, value_name = "TIME|OFFSET")]
    at: Option<At>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ScreenVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let at = self.at.map(At::moment).transpose()?;
        let reply = client.query::<GetScreen>(&ScreenArgs { process_id, at })?;
        if self.json {
            return print_json(&reply.json);
        }
        let rows: Vec<_> = reply.result.rows.iter().map(|row| one_line(row)).collect();
        print(rows.join("\n").trim_end());
        Ok(())
    }
}
