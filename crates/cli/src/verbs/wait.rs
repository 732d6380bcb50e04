//! `patterm wait`: waits for a line of output.

use std::process::ExitCode;

use clap::Args;
use patterm_wire::tools::{PatternArgs, PatternScope, WaitForPattern};

use super::search::pattern;
use crate::client::Client;
use crate::print::{one_line, print, print_json, warn};

/// The exit code if no line matched in time.
const TIMED_OUT: u8 = 3;

/// The exit code if the process ended before a line matched.
const ENDED: u8 = 4;

const CODES: &str = "Exit codes: 0 a line matched, 3 no line matched in time, 4 the process ended without \
    a match, 1 another failure, 2 wrong usage.";

/// Wait for a line of output that matches
#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct WaitVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// A regular expression
    #[arg(value_name = "REGEX", value_parser = pattern)]
    pattern: String,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    timeout: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WaitVerb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let args = |timeout_seconds| PatternArgs {
            process_id: process_id.clone(),
            pattern: self.pattern.clone(),
            timeout_seconds,
            scope: PatternScope::Scrollback,
        };
        let reply = client.query_for::<WaitForPattern>(self.timeout, args)?;
        let result = reply.result;
        if self.json {
            print_json(&reply.json)?;
        } else if result.matched {
            print(&one_line(result.line.as_deref().unwrap_or_default()));
        }
        if result.matched {
            return Ok(ExitCode::SUCCESS);
        }
        if result.exited {
            warn(&format!("{process_id} ended before a line matched"));
            return Ok(ExitCode::from(ENDED));
        }
        warn(&format!("no match within {} s", self.timeout));
        Ok(ExitCode::from(TIMED_OUT))
    }
}

/// A number of seconds to wait.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    /// The server's limit.
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST).contains(&seconds) => Ok(seconds),
        _ => Err(format!("must be 0 to {MOST} seconds")),
    }
}
