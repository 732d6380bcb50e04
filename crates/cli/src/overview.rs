//! `patterm` without a verb: makes sure that the project has a server and says what there is.

use patterm_host::{Project, VERSION};

use crate::{say, start};

pub(crate) fn run() -> anyhow::Result<()> {
    let project = Project::of(&std::env::current_dir()?)?;
    let (entry, _) = start::find_or_start(&project)?;
    say(&format!(
        "patterm {VERSION}\n\
         project  {}\n\
         server   pid {}, {}\n\n\
         This version has no panes yet. What it has: an MCP server that knows who calls.\n\
         Connect a client with `patterm mcp-stdio`; list servers with `patterm ls`; end this one \
         with `patterm kill`.",
        entry.project.display(),
        entry.pid,
        entry.socket.display(),
    ));
    Ok(())
}
