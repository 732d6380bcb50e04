//! `patterm wait`: waits for a line of output.

use clap::Args;
use patterm_wire::tools::{PatternArgs, PatternScope, WaitForPattern};

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Wait for a line of output that matches
#[derive(Debug, Args)]
pub(crate) struct WaitVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    process: String,
    /// A regular expression
    #[arg(value_name = "REGEX")]
    pattern: String,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    timeout: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WaitVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let process_id = client.resolve(&self.process)?;
        let args = PatternArgs {
            process_id,
            pattern: self.pattern,
            timeout_seconds: self.timeout,
            scope: PatternScope::Scrollback,
        };
        let reply = client.query::<WaitForPattern>(&args)?;
        let result = reply.result;
        if self.json {
            print_json(&reply.json)?;
        } else if result.matched {
            print(&one_line(result.line.as_deref().unwrap_or_default()));
        }
        anyhow::ensure!(!result.exited, "{} ended before a line matched", args.process_id);
        anyhow::ensure!(result.matched, "no match within {} s", self.timeout);
        Ok(())
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    /// The server's limit.
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST).contains(&seconds) => Ok(seconds),
        _ => Err(format!("must be 0 to {MOST} seconds")),
    }
}
