//! `patterm init`: a commented project file from what the project has.

mod found;
mod write;

use std::fs::OpenOptions;
use std::io::{self, Write};

use anyhow::Context;
use patterm_host::project_file::ProjectFile;
use patterm_store::project::PROJECT_FILE;

use crate::said::{one_line, say, shown_path};
use crate::servers::in_mcp_json;
use crate::start;

pub(crate) fn run() -> anyhow::Result<()> {
    let project = start::project_here()?;
    let path = project.root().join(PROJECT_FILE);
    let suggestions = found::in_folder(project.root());
    let servers = in_mcp_json(project.root()).unwrap_or_default().tables;
    let text = write::project_file(&suggestions, &servers);
    // What we write must be what we read.
    let sound = ProjectFile::parse(&text).is_ok();
    anyhow::ensure!(sound, "a fault in patterm: it cannot read the file that it would write");
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            anyhow::bail!("there is a {} already; it is left as it is", path.display())
        }
        file => file.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    let from: Vec<_> = suggestions
        .iter()
        .map(|one| format!("  {}: {}", one_line(&one.name), one_line(&one.command)))
        .collect();
    let servers = servers.iter().map(|(name, _)| format!("  {name}: a shared MCP server"));
    let from: Vec<_> = from.into_iter().chain(servers).collect();
    let found = match from.is_empty() {
        true => "nothing that could be started was found; it holds an example".to_owned(),
        false => format!("it declares, and starts nothing by itself:\n{}", from.join("\n")),
    };
    say(&format!(
        "wrote {}\n{found}\nLook at it, change it, then `patterm trust` it.",
        shown_path(&path)
    ));
    Ok(())
}
