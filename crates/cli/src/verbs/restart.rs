//! `patterm restart`: ends a process and starts it again.

use clap::Args;
use patterm_wire::tools::{ProcessRef, RestartProcess};

use super::restore;
use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// End a process and start it again
#[derive(Debug, Args)]
pub(crate) struct RestartVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID", required_unless_present = "bring_back")]
    process: Option<String>,
    /// The spelling of `patterm restore` in 0.1
    #[arg(long, conflicts_with = "process", hide = true)]
    bring_back: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl RestartVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(process) = self.process else { return restore::run(self.json) };
        let mut client = Client::connect()?;
        let id = client.resolve(&process)?;
        let reply = client.call::<RestartProcess>(&ProcessRef { process_id: id.clone() })?;
        if self.json {
            return print_json(&reply.json);
        }
        print(&match reply.result.new_conversation {
            Some(why) => format!("restarted {id} with a new conversation: {}", one_line(&why)),
            None => format!("restarted {id}"),
        });
        Ok(())
    }
}
