//! `patterm upgrade`: replaces this project's running server by this binary. Programs go on; the new
//! server takes them from the keeper.

use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{HANDOVER_METHOD, Settings, VERSION};
use patterm_store::state::StateDir;

use crate::kill;
use crate::said::{one_line, say};
use crate::start::{self, PreviousServer, Report};

pub(crate) fn run() -> anyhow::Result<()> {
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    let entries = registry::find(project.key(), &RuntimeDir::candidates(None), state.as_ref());
    // Before the old server ends: a mistake in the settings must cost nothing.
    let settings = Settings::from_env(project)?;
    let mut replaced = None;
    for entry in entries {
        if let Some(stream) = start::connect(&entry.socket)? {
            let previous = PreviousServer::of(&entry);
            kill::end(&entry, stream, HANDOVER_METHOD)?;
            replaced = Some((entry, previous));
            break;
        }
    }
    let started = start::start_next(&settings).and_then(|report| match report {
        Report::Serving(entry) => Ok(entry),
        Report::Failed(why) => Err(anyhow::anyhow!(why)),
    });
    let entry = match (started, &replaced) {
        (Ok(entry), _) => entry,
        (Err(error), None) => return Err(error),
        (Err(error), Some((old, previous))) => {
            let version = one_line(&old.patterm);
            let outcome = match start::start_again(&settings, previous) {
                Ok(entry) => format!("patterm {version} serves again (pid {})", entry.pid),
                Err(again) => format!("patterm {version} does not start again either: {again:#}"),
            };
            anyhow::bail!("patterm {VERSION} does not start: {error:#}; {outcome}");
        }
    };
    anyhow::ensure!(
        entry.patterm == VERSION,
        "the keeper started patterm {} again; to replace it by {VERSION} ({}), run this outside of \
         patterm's panes",
        entry.patterm,
        std::env::current_exe().unwrap_or_default().display()
    );
    say(&match replaced {
        Some((old, _)) => format!(
            "replaced patterm {} (pid {}) by {VERSION} (pid {}); everything goes on",
            one_line(&old.patterm),
            old.pid,
            entry.pid
        ),
        None => format!("no server ran; started {VERSION} (pid {})", entry.pid),
    });
    Ok(())
}
