//! Verbs and flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The terminal in which a team of coding agents works.
#[derive(Debug, Parser)]
#[command(name = "patterm", version, about, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start this project's server in the background
    Serve(Serve),
    /// End this project's server and everything in it
    Kill(Kill),
    /// List your servers with their projects
    Ls(Ls),
    /// Speak MCP on standard input and output, for an agent's CLI
    McpStdio(McpStdio),
    /// Keep the panes of a project: how the server starts its keeper
    #[command(hide = true)]
    Keeper(Keeper),
}

#[derive(Debug, Args)]
pub(crate) struct Keeper {
    /// Where to listen for the server
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// What starts a server again when it dies
    #[arg(last = true)]
    pub(crate) server: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Stay in the foreground and log to standard error
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print where the server is found as JSON
    #[arg(long, conflicts_with = "foreground")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: MessageLimit,
    /// Leave the terminal and report on standard output: how the background server is started
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "json"])]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Kill {
    /// End the servers of all your projects
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpStdio {
    /// The server's socket [env: PATTERM_SOCKET]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The key of the project meant [env: PATTERM_PROJECT_KEY]
    #[arg(long, value_name = "KEY", value_parser = project_key)]
    pub(crate) project_key: Option<String>,
    /// A file that holds the caller's identity token [env: PATTERM_IDENTITY_FILE]
    #[arg(long, value_name = "PATH")]
    pub(crate) identity_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: MessageLimit,
}

/// Takes the key of a project, wherever it comes from.
pub(crate) fn project_key(text: &str) -> Result<String, &'static str> {
    match patterm_host::project::is_key(text) {
        true => Ok(text.to_owned()),
        false => Err("a project key has 16 hexadecimal digits"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct MessageLimit {
    /// The longest message taken, in bytes [env: PATTERM_MAX_MESSAGE_BYTES] [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1024..))]
    max_message_bytes: Option<u64>,
}

impl MessageLimit {
    /// The limit that the flag, else the environment, else the default sets.
    pub(crate) fn bytes(&self) -> anyhow::Result<usize> {
        const VARIABLE: &str = "PATTERM_MAX_MESSAGE_BYTES";
        let bytes = match (self.max_message_bytes, std::env::var(VARIABLE)) {
            (Some(bytes), _) => bytes,
            (None, Ok(text)) => match text.parse::<u64>() {
                Ok(bytes) if bytes >= 1024 => bytes,
                _ => anyhow::bail!("{VARIABLE} takes a number of bytes from 1024 up, not {text:?}"),
            },
            (None, Err(_)) => return Ok(patterm_wire::DEFAULT_MESSAGE_LIMIT),
        };
        Ok(usize::try_from(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
