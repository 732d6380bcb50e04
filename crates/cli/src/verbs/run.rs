//! `patterm run`: starts a command.

use clap::Args;
use patterm_wire::tools::{SpawnProcess, SpawnProcessArgs};

use super::environment::EnvironmentArgs;
use super::spawn::{name, spawn};
use crate::start;

/// Run a command in a new pane and print its id
#[derive(Debug, Args)]
pub(crate) struct RunVerb {
    /// A name for the process
    #[arg(long, value_parser = name)]
    name: Option<String>,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show it on this terminal once it has started
    #[arg(short, long, conflicts_with = "json")]
    attach: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl RunVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let args = SpawnProcessArgs {
            argv: Some(self.command),
            name: self.name,
            working_dir: Some(start::here()?),
            ..SpawnProcessArgs::default()
        };
        spawn::<SpawnProcess>(&args, &self.environment, self.json, self.attach)
    }
}
