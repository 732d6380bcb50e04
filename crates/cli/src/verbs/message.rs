//! `patterm message`: sends a message to agents.

use clap::Args;
use patterm_wire::tools::{DeliveryState, MessageArgs, SendMessage};

use super::several::{each, print_results};
use crate::client::Client;
use crate::print::{one_line, print};

/// Send a message to agents, as a new turn
#[derive(Debug, Args)]
pub(crate) struct MessageVerb {
    /// Ids, unique names, or unique prefixes of either
    #[arg(value_name = "ID", required = true, num_args = 1..)]
    processes: Vec<String>,
    /// The message
    #[arg(required = true)]
    text: String,
    /// Print JSON: an object for one process, a list for several
    #[arg(long)]
    json: bool,
}

impl MessageVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let ids = client.resolve_all(&self.processes)?;
        let mut results = Vec::new();
        let done = each(&ids, |id| {
            let (target_process_id, message) = (id.to_owned(), self.text.clone());
            let reply = client.call::<SendMessage>(&MessageArgs { target_process_id, message })?;
            let receipt = reply.result.receipt;
            let line = one_line(&format!("{}: {}", receipt.state.name(), receipt.evidence));
            match (self.json, ids.len()) {
                (true, _) => results.push(reply.json),
                (false, 1) => print(&line),
                (false, _) => print(&format!("{id} {line}")),
            }
            let stalled = receipt.state == DeliveryState::Stalled;
            anyhow::ensure!(!stalled, "the message was not delivered");
            Ok(())
        });
        if self.json {
            print_results(ids.len(), results)?;
        }
        done
    }
}
