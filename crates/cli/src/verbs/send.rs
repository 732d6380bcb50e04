//! `patterm send`: types a line into processes.

use clap::Args;
use patterm_wire::tools::{InputArgs, SendInput, TypedInput};

use super::several::each;
use crate::client::Client;
use crate::print::print;

/// Type a line into processes
#[derive(Debug, Args)]
pub(crate) struct SendVerb {
    /// Ids, unique names, or unique prefixes of either
    #[arg(value_name = "ID", required = true, num_args = 1..)]
    processes: Vec<String>,
    /// The text to type
    #[arg(required = true)]
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
        let mut client = Client::connect_to_read()?;
        let ids = client.resolve_all(&self.processes)?;
        let (text, submit) = (self.text, !self.no_enter);
        let input = match self.paste {
            true => TypedInput::Paste { text, submit },
            false => TypedInput::Text { text, submit },
        };
        each(&ids, |id| {
            client.call::<SendInput>(&InputArgs {
                process_id: id.to_owned(),
                input: input.clone(),
            })?;
            print(&format!("typed into {id}"));
            Ok(())
        })
    }
}
