//! `patterm close`: ends a process and removes it.

use clap::Args;
use patterm_wire::tools::{CloseProcess, ProcessRef};

use crate::client::Client;
use crate::print::print;

/// End a process and everything it started, and remove it
#[derive(Debug, Args)]
pub(crate) struct CloseVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    process: String,
}

impl CloseVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let id = client.resolve(&self.process)?;
        client.call::<CloseProcess>(&ProcessRef { process_id: id.clone() })?;
        print(&format!("closed {id}"));
        Ok(())
    }
}
