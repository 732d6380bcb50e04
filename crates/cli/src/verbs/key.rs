//! `patterm key`: presses keys in processes.

use clap::Args;
use patterm_wire::tools::{InputArgs, SendInput, TypedInput};

use super::several::each;
use crate::client::Client;
use crate::print::print;

/// Press keys in a process
#[derive(Debug, Args)]
pub(crate) struct KeyVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// Keys: enter, escape, up, ctrl+c, f1, …
    #[arg(value_name = "KEY", required = true, value_parser = key)]
    keys: Vec<String>,
    /// Another process to press them in; may be repeated
    #[arg(long = "also", value_name = "ID")]
    others: Vec<String>,
}

/// The name of a key that the server knows.
fn key(text: &str) -> Result<String, String> {
    patterm_host::tools::check_key(text).map(|()| text.to_owned())
}

impl KeyVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let given: Vec<_> = std::iter::once(self.process).chain(self.others).collect();
        each(&client.resolve_all(&given)?, |id| {
            for key in &self.keys {
                let input = TypedInput::Key { key: key.clone() };
                client.call::<SendInput>(&InputArgs { process_id: id.to_owned(), input })?;
            }
            print(&format!("pressed {} in {id}", self.keys.join(" ")));
            Ok(())
        })
    }
}
