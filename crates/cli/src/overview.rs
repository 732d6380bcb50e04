//! `patterm` without a verb: shows the project. Without a terminal it starts a server if there is none, and
//! prints where that is.

use patterm_host::VERSION;

use crate::print::{print, printable_path};
use crate::{start, tui};

pub(crate) fn run() -> anyhow::Result<()> {
    if tui::has_terminal() {
        return tui::run(None);
    }
    let project = start::project_here()?;
    let (entry, _) = start::find_or_start(&project)?;
    print(&format!(
        "patterm {VERSION}\n\
         project  {}\n\
         server   pid {}, {}\n\n\
         Run `patterm` on a terminal to see the project.\n\
         `patterm mcp-stdio` connects an MCP client, `patterm ls` lists servers, and `patterm kill` \
         ends this one.",
        printable_path(&entry.project),
        entry.pid,
        printable_path(&entry.socket),
    ));
    Ok(())
}
