//! `patterm`: the one binary. It parses the arguments and runs the verb.

mod client;
mod complete;
mod connect;
#[cfg(test)]
mod contract_tests;
mod errors;
mod find;
mod hung;
mod identity;
mod limits;
mod mcp_stdio;
mod overview;
mod pad_editor;
mod print;
mod settings_path;
mod since;
mod start;
mod systemd;
mod tmux;
mod toml_string;
mod tui;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = verbs::parse().and_then(|verb| match verb {
        Some(verb) => verb.run(),
        None => overview::run().map(|()| ExitCode::SUCCESS),
    });
    match outcome.and_then(|code| print::check_written().map(|()| code)) {
        Ok(code) => code,
        Err(error) => {
            print::report_error(&error);
            ExitCode::FAILURE
        }
    }
}
