//! `patterm upgrade`: replaces this project's running server by this binary. Programs go on; the new
//! server takes them from the keeper.

use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{HANDOVER_METHOD, Settings, VERSION};
use patterm_store::state::StateDir;

use crate::kill;
use crate::said::{one_line, say};
use crate::start::{self, Report};

pub(crate) fn run() -> anyhow::Result<()> {
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    let entries = registry::find(project.key(), &RuntimeDir::candidates(None), state.as_ref());
    let mut replaced = None;
    for entry in entries {
        if let Some(stream) = start::connect(&entry.socket)? {
            kill::end(&entry, stream, HANDOVER_METHOD)?;
            replaced = Some(entry);
            break;
        }
    }
    let settings = Settings::from_env(project)?;
    let entry = match start::start_next(&settings)? {
        Report::Serving(entry) => entry,
        Report::Failed(why) => anyhow::bail!(why),
    };
    anyhow::ensure!(
        entry.patterm == VERSION,
        "the keeper started patterm {} again; to replace it by {VERSION} ({}), run this outside of \
         patterm's panes",
        entry.patterm,
        std::env::current_exe().unwrap_or_default().display()
    );
    say(&match replaced {
        Some(old) => format!(
            "replaced patterm {} (pid {}) by {VERSION} (pid {}); everything goes on",
            one_line(&old.patterm),
            old.pid,
            entry.pid
        ),
        None => format!("no server ran; started {VERSION} (pid {})", entry.pid),
    });
    Ok(())
}
