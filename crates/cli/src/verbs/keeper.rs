//! `patterm keeper`: how the server starts its keeper.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use patterm_keeper::KeeperOptions;

/// Hold the panes of a project
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct KeeperVerb {
    /// The socket to listen on for the server
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The command that starts a server again when it dies
    #[arg(last = true)]
    server: Vec<OsString>,
}

impl KeeperVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        patterm_keeper::run(KeeperOptions { socket: self.socket, server: self.server })?;
        Ok(())
    }
}
