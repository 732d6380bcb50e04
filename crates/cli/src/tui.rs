//! `patterm` and `patterm attach`: the project on the person's terminal.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{PANE_VARIABLE, PERSON, Project};
use patterm_store::state::{self, StateDir};
use patterm_tui::{Around, Depth, Door, Options, SavedLayout};

use crate::said::say;
use crate::{pads, start};

/// Whether there is a terminal to show it on.
pub(crate) fn has_terminal() -> bool {
    use rustix::stdio::{stdin, stdout};
    rustix::termios::isatty(stdin()) && rustix::termios::isatty(stdout())
}

/// Says what to do where there is none.
pub(crate) fn must_have_terminal() -> anyhow::Result<()> {
    anyhow::ensure!(
        has_terminal(),
        "this is no terminal to show it on; `patterm screen ID` prints what a process shows"
    );
    Ok(())
}

/// Shows the project, with this process in front.
pub(crate) fn run(process: Option<String>) -> anyhow::Result<()> {
    let project = start::project_here()?;
    // It would show itself in itself without end.
    let pane = std::env::var(PANE_VARIABLE).unwrap_or_default();
    if let Some((key, id)) = pane.split_once('/') {
        anyhow::ensure!(key != project.key(), "this is pane {id} of this project already");
    }
    anyhow::ensure!(
        std::env::var("TERM").is_ok_and(|term| term != "dumb"),
        "this terminal cannot place text (TERM is dumb or not set), so the project cannot be shown \
         on it; `patterm ps`, `patterm logs ID` and the other verbs work here"
    );
    start::find_or_start(&project)?;
    let set = |variable: &str| std::env::var(variable).ok();
    let (no_color, colorterm, term) = (set("NO_COLOR"), set("COLORTERM"), set("TERM"));
    let depth = Depth::of(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
    let around = Around::of(set);
    let settings = patterm_host::server::settings_file("tui.toml");
    let door = Box::new(ProjectDoor { project });
    patterm_tui::run(Options { process, depth, around, settings, door })?;
    say("left; what runs goes on, `patterm` returns");
    Ok(())
}

/// The version of the file that keeps the layout.
const LAYOUT_VERSION: u32 = 1;

struct ProjectDoor {
    project: Project,
}

impl ProjectDoor {
    fn layout_file(&self) -> Option<PathBuf> {
        Some(StateDir::from_env(self.project.key()).ok()?.file("layout.json"))
    }
}

impl Door for ProjectDoor {
    fn open(&self) -> Result<Option<UnixStream>, String> {
        let folders = RuntimeDir::candidates(None);
        let state = StateDir::from_env(self.project.key()).ok();
        for entry in registry::find(self.project.key(), &folders, state.as_ref()) {
            let stream = start::connect(&entry.socket).map_err(|e| format!("{e:#}"))?;
            if stream.is_some() {
                return Ok(stream);
            }
        }
        Ok(None)
    }

    fn greeting(&self) -> String {
        // Tests break the TUI here, while it has the terminal. What is released cannot be broken so.
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("PATTERM_BREAK").is_none(), "asked to break");
        PERSON.to_owned()
    }

    fn saved_layout(&self) -> Option<SavedLayout> {
        state::read(&self.layout_file()?, LAYOUT_VERSION).ok().flatten()
    }

    fn save_layout(&self, layout: &SavedLayout) {
        // Without it the next visit begins with one pane; nothing else is lost.
        if let Some(file) = self.layout_file() {
            let _ = state::write(&file, LAYOUT_VERSION, layout);
        }
    }

    fn edit(&self, pad: &str) -> Result<(), String> {
        pads::edit_named(pad).map_err(|e| format!("{e:#}"))
    }
}
