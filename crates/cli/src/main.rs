//! `patterm`: the one binary. It reads the arguments and hands over to the verb.

mod args;
mod kill;
mod ls;
mod mcp_stdio;
mod overview;
mod serve;
mod start;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Keeper, Verb};
use patterm_keeper::Options;

fn main() -> ExitCode {
    let Arguments { verb } = Arguments::parse();
    let outcome = match verb {
        Some(Verb::McpStdio(options)) => return mcp_stdio::run(options),
        Some(Verb::Serve(options)) => serve::run(&options),
        Some(Verb::Keeper(Keeper { socket, server })) => {
            patterm_keeper::run(Options { socket, server }).map_err(Into::into)
        }
        Some(Verb::Kill(options)) => kill::run(&options),
        Some(Verb::Ls(options)) => ls::run(&options),
        None => overview::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Says on standard error why a verb failed.
#[expect(clippy::print_stderr, reason = "this is where errors go")]
fn complain(error: &anyhow::Error) {
    eprintln!("patterm: {error:#}");
}

/// Prints a verb's own words.
#[expect(clippy::print_stdout, reason = "this is what verbs are for")]
fn say(text: &str) {
    println!("{}", text.trim_end());
}
