//! `patterm`: the one binary. It parses the arguments and runs the verb.

mod client;
mod connect;
#[cfg(test)]
mod contract_tests;
mod errors;
mod help;
mod identity;
mod limits;
mod mcp_stdio;
mod overview;
mod print;
mod start;
mod toml_string;
mod tui;
mod verbs;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser};

use verbs::Verb;

/// Notes on all verbs.
const NOTES: &str = "Without a command, patterm shows this folder's project on the terminal.\n\
    An ID may be an id, a unique name, or the start of one.\n\
    Exit codes: 0 success, 1 failure (the reason is on standard error), 2 wrong usage.";

/// The terminal in which a team of coding agents works.
#[derive(Debug, Parser)]
#[command(name = "patterm", version, about, disable_help_subcommand = true, after_help = NOTES)]
struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

fn main() -> ExitCode {
    let matches = help::command().get_matches();
    let Arguments { verb } = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let outcome = match verb {
        Some(verb) => verb.run(),
        None => overview::run().map(|()| ExitCode::SUCCESS),
    };
    match outcome.and_then(|code| print::check_written().map(|()| code)) {
        Ok(code) => code,
        Err(error) => {
            print::report_error(&error);
            ExitCode::FAILURE
        }
    }
}
