//! `patterm send`: types a line into a process.

use clap::Args;
use patterm_wire::tools::{InputArgs, SendInput, TypedInput};

use crate::client::Client;
use crate::print::print;

/// Type a line into a process
#[derive(Debug, Args)]
pub(crate) struct SendVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    process: String,
    /// The text to type
    text: String,
    /// Do not press Enter afterwards
    #[arg(long)]
    no_enter: bool,
    /// Send it as one paste
    #[arg(long)]
    paste: bool,
}

impl SendVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let id = client.resolve(&self.process)?;
        let (text, submit) = (self.text, !self.no_enter);
        let input = match self.paste {
            true => TypedInput::Paste { text, submit },
            false => TypedInput::Text { text, submit },
        };
        client.call::<SendInput>(&InputArgs { process_id: id.clone(), input })?;
        print(&format!("typed into {id}"));
        Ok(())
    }
}
