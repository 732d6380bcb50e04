//! `patterm completions`, `patterm man` and `patterm schema`: generated from the definitions.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;
use patterm_project::project_file;

use super::help;
use crate::print::{print, print_bytes, print_json_text, printable_path};

/// Print completions for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsVerb {
    /// The shell
    shell: Shell,
}

impl CompletionsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // These ask `patterm complete`, so that they also know processes, presets, servers and scratchpads.
        let script = match self.shell {
            Shell::Bash => include_str!("../completions/patterm.bash"),
            Shell::Fish => include_str!("../completions/patterm.fish"),
            Shell::Zsh => include_str!("../completions/patterm.zsh"),
            other => return print_static(other),
        };
        print_bytes(script.as_bytes());
        Ok(())
    }
}

/// Completions of verbs and flags only.
fn print_static(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "patterm", &mut script);
    print_bytes(&script);
    Ok(())
}

/// Write man pages into a folder
#[derive(Debug, Args)]
pub(crate) struct ManVerb {
    /// The folder, which is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl ManVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = &self.folder;
        let cannot = || format!("cannot write to {}", folder.display());
        std::fs::create_dir_all(folder).with_context(cannot)?;
        clap_mangen::generate_to(help::command(), folder).with_context(cannot)?;
        print(&format!("wrote man pages to {}", printable_path(folder)));
        Ok(())
    }
}

/// Print the JSON schema of patterm.toml
#[derive(Debug, Args)]
pub(crate) struct SchemaVerb {}

impl SchemaVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        print_json_text(&serde_json::to_string_pretty(&project_file::schema())?);
        Ok(())
    }
}
