//! `patterm upgrade`: replaces this project's running server with this binary. Programs keep running; the new
//! server takes them over from the keeper.

use clap::Args;
use patterm_host::registry::{self, Replacement};
use patterm_host::runtime::RuntimeDir;
use patterm_host::{Settings, VERSION};
use patterm_store::state::StateDir;
use patterm_wire::method::Empty;
use patterm_wire::requests::Handover;

use super::kill;
use crate::print::{one_line, print};
use crate::start::{self, PreviousServer, StartReport};

/// Replace this project's running server with this binary
#[derive(Debug, Args)]
pub(crate) struct UpgradeVerb {}

impl UpgradeVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run()
    }
}

fn run() -> anyhow::Result<()> {
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key()).ok();
    let entries = registry::find(project.key(), &RuntimeDir::candidates(None), state.as_ref());
    // Before the old server ends: an error in the settings must not cost anything.
    let settings = Settings::from_env(project)?;
    let _replacement = Replacement::begin(settings.project.key(), &settings.runtime);
    let mut replaced = None;
    for entry in entries {
        if let Some(stream) = start::connect(&entry.socket)? {
            let previous = PreviousServer::of(&entry);
            kill::end::<Handover>(&entry, stream, &Empty {})?;
            replaced = Some((entry, previous));
            break;
        }
    }
    let previous = replaced.as_ref().map(|(_, previous)| previous);
    let started = start::start_next(&settings, previous).and_then(|report| match report {
        StartReport::Serving(entry) => Ok(entry),
        StartReport::Failed(why) => Err(anyhow::anyhow!(why)),
    });
    let entry = match (started, &replaced) {
        (Ok(entry), _) => entry,
        (Err(error), None) => return Err(error),
        (Err(error), Some((old, previous))) => {
            let version = one_line(&old.patterm);
            let outcome = match start::start_again(&settings, previous) {
                Ok(entry) => format!("patterm {version} is running again (pid {})", entry.pid),
                Err(again) => format!("patterm {version} does not start again either: {again:#}"),
            };
            anyhow::bail!("patterm {VERSION} does not start: {error:#}; {outcome}");
        }
    };
    anyhow::ensure!(
        entry.patterm == VERSION,
        "the keeper started patterm {} again; to replace it with {VERSION} ({}), run this outside of \
         patterm's panes",
        entry.patterm,
        std::env::current_exe().unwrap_or_default().display()
    );
    print(&match replaced {
        Some((old, _)) => format!(
            "replaced patterm {} (pid {}) with {VERSION} (pid {}); everything keeps running",
            one_line(&old.patterm),
            old.pid,
            entry.pid
        ),
        None => format!("no server was running; started {VERSION} (pid {})", entry.pid),
    });
    Ok(())
}
