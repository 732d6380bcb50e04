//! `patterm search`: searches the output of a process.

use clap::Args;
use patterm_wire::tools::{SearchArgs, SearchOutput};

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Search the output of a process
#[derive(Debug, Args)]
pub(crate) struct SearchVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// A regular expression
    #[arg(value_name = "REGEX", value_parser = pattern)]
    pattern: String,
    /// The maximum number of lines [default: 20]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A regular expression that the server accepts.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    patterm_host::tools::check_pattern(text).map(|()| text.to_owned())
}

impl SearchVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let args = SearchArgs { process_id, pattern: self.pattern, limit: self.limit };
        let reply = client.query::<SearchOutput>(&args)?;
        let matches = &reply.result.matches;
        if self.json {
            print_json(&reply.json)?;
        } else {
            for found in matches {
                print(&format!("{}: {}", found.line, one_line(&found.text)));
            }
        }
        anyhow::ensure!(!matches.is_empty(), "no line matches");
        Ok(())
    }
}
