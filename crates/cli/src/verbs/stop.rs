//! `patterm stop`: ends processes.

use clap::Args;
use patterm_wire::tools::{StopArgs, StopProcess};

use super::several::each;
use crate::client::Client;
use crate::print::print;

/// End processes and keep their output
#[derive(Debug, Args)]
pub(crate) struct StopVerb {
    /// Ids, unique names, or unique prefixes of either
    #[arg(value_name = "ID", required = true)]
    processes: Vec<String>,
    /// The signal, by name or number; only TERM, INT, QUIT, KILL and HUP end a process [default: TERM]
    #[arg(long, value_name = "SIGNAL", value_parser = signal)]
    signal: Option<String>,
}

impl StopVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let ids = client.resolve_all(&self.processes)?;
        each(&ids, |id| {
            let args = StopArgs { process_id: id.to_owned(), signal: self.signal.clone() };
            let stopped = client.call::<StopProcess>(&args)?.result;
            // Other signals do not end it.
            let done = if stopped.status.is_alive() { "signalled" } else { "stopped" };
            print(&format!("{done} {id}"));
            Ok(())
        })
    }
}

/// A signal that the server knows, by number or name.
fn signal(text: &str) -> Result<String, String> {
    patterm_host::tools::check_signal(text).map(|()| text.to_owned())
}
