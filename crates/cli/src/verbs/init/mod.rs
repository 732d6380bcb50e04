//! `patterm init`: writes a commented project file from what it finds in the project.

mod compose;
mod detect;
mod flow;
mod names;
mod process_compose;
mod python;
mod suggestion;
mod workspaces;
mod write;
mod yaml;

use std::fs::OpenOptions;
use std::io::{self, Write};

use anyhow::Context;
use clap::Args;
use patterm_project::project_file::ProjectFile;
use patterm_store::project::PROJECT_FILE;

use self::suggestion::Suggestion;
use super::servers::{ImportedServers, in_mcp_json};
use crate::print::{one_line, print, printable_path};
use crate::start;

/// Write a patterm.toml based on what the project contains
#[derive(Debug, Args)]
pub(crate) struct InitVerb {}

impl InitVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run()
    }
}

fn run() -> anyhow::Result<()> {
    let project = start::project_here()?;
    let path = project.root().join(PROJECT_FILE);
    let suggestions = detect::in_folder(project.root());
    let ImportedServers { tables: servers, skipped } =
        in_mcp_json(project.root()).unwrap_or_default();
    let text = write::project_file(&suggestions, &servers);
    // A file that we write must be valid.
    if let Err(faults) = ProjectFile::parse(&text) {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        anyhow::bail!("patterm could not read the file that it would write: {}", faults.join("; "));
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            anyhow::bail!("{} already exists; it was not changed", path.display())
        }
        file => file.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    let (tasks, lasting): (Vec<_>, Vec<_>) = suggestions.iter().partition(|one| one.is_comment);
    let process = |one: &&Suggestion| {
        let renamed = one.renamed.iter().map(|why| format!(" ({})", one_line(why)));
        let renamed: String = renamed.collect();
        format!("  {}: {}{renamed}", one_line(&one.name), one_line(&one.command))
    };
    let processes = lasting.iter().map(process);
    let servers = servers.iter().map(|(name, _)| format!("  {name}: a shared MCP server"));
    let declared: Vec<_> = processes.chain(servers).collect();
    let found = match declared.is_empty() {
        true => "nothing to start was found, so it contains an example".to_owned(),
        false => format!("it declares, without starting anything yet:\n{}", declared.join("\n")),
    };
    let found = match tasks.len() {
        0 => found,
        _ => {
            let names: Vec<_> = tasks.iter().map(|task| one_line(&task.name)).collect();
            format!(
                "{found}\nas comments, because `patterm up` would start them: {}",
                names.join(", ")
            )
        }
    };
    let skipped: String = skipped
        .iter()
        .map(|why| format!("\nnot taken over from .mcp.json: {}", one_line(why)))
        .collect();
    print(&format!(
        "wrote {}\n{found}{skipped}\nReview it and adjust it; then `patterm trust` approves it, and `patterm up` starts everything.",
        printable_path(&path)
    ));
    Ok(())
}
