//! `patterm message`: sends a message to an agent.

use clap::Args;
use patterm_wire::tools::{DeliveryState, MessageArgs, SendMessage};

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Send a message to an agent, as a new turn
#[derive(Debug, Args)]
pub(crate) struct MessageVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    process: String,
    /// The message
    text: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl MessageVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let target_process_id = client.resolve(&self.process)?;
        let args = MessageArgs { target_process_id, message: self.text };
        let reply = client.call::<SendMessage>(&args)?;
        let receipt = reply.result.receipt;
        match self.json {
            true => print_json(&reply.json)?,
            false => print(&format!("{}: {}", receipt.state.name(), one_line(&receipt.evidence))),
        }
        anyhow::ensure!(receipt.state != DeliveryState::Stalled, "the message was not delivered");
        Ok(())
    }
}
