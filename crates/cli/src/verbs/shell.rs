//! `patterm shell`: starts a shell.

use clap::Args;
use patterm_wire::follow::ProcessKind;
use patterm_wire::tools::{SpawnProcess, SpawnProcessArgs};

use super::environment::EnvironmentArgs;
use super::spawn::{name, spawn};
use crate::start;

/// Start a shell in a new pane and print its id
#[derive(Debug, Args)]
pub(crate) struct ShellVerb {
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
}

impl ShellVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let args = SpawnProcessArgs {
            kind: Some(ProcessKind::Terminal),
            name: self.name,
            working_dir: Some(start::here()?),
            ..SpawnProcessArgs::default()
        };
        spawn::<SpawnProcess>(&args, &self.environment, self.json, self.attach)
    }
}
