//! `patterm` without a verb: shows the project; where there is no terminal, makes sure that it has a
//! server and says where that is.

use patterm_host::VERSION;

use crate::said::{say, shown_path};
use crate::{start, tui};

pub(crate) fn run() -> anyhow::Result<()> {
    if tui::has_terminal() {
        return tui::run(None);
    }
    let project = start::project_here()?;
    let (entry, _) = start::find_or_start(&project)?;
    say(&format!(
        "patterm {VERSION}\n\
         project  {}\n\
         server   pid {}, {}\n\n\
         On a terminal, this shows the project.\n\
         Connect a client with `patterm mcp-stdio`; list servers with `patterm ls`; end this one \
         with `patterm kill`.",
        shown_path(&entry.project),
        entry.pid,
        shown_path(&entry.socket),
    ));
    Ok(())
}
