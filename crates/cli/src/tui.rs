//! `patterm` and `patterm attach`: the project on the user's terminal.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{PANE_VARIABLE, PERSON, Project};
use patterm_store::state::{self, StateDir};
use patterm_tui::{ColourDepth, Options, SavedLayout, ServerConnector, TerminalInfo};

use crate::print::print;
use crate::{pad_editor, start};

/// Whether there is a terminal to show it on.
pub(crate) fn has_terminal() -> bool {
    use rustix::stdio::{stdin, stdout};
    rustix::termios::isatty(stdin()) && rustix::termios::isatty(stdout())
}

/// Fails if there is none.
pub(crate) fn must_have_terminal() -> anyhow::Result<()> {
    anyhow::ensure!(
        has_terminal(),
        "standard input and output are not a terminal; `patterm screen ID` prints a process's screen"
    );
    Ok(())
}

/// Shows the project, with this process selected.
pub(crate) fn run(process: Option<String>) -> anyhow::Result<()> {
    let project = start::project_here()?;
    // It would show itself inside itself, endlessly.
    let pane = std::env::var(PANE_VARIABLE).unwrap_or_default();
    if let Some((key, id)) = pane.split_once('/') {
        anyhow::ensure!(key != project.key(), "this is already pane {id} of this project");
    }
    anyhow::ensure!(
        std::env::var("TERM").is_ok_and(|term| term != "dumb"),
        "this terminal cannot show the project (TERM is dumb or not set); `patterm ps`, \
         `patterm logs ID` and the other verbs work here"
    );
    start::find_or_start(&project)?;
    let set = |variable: &str| std::env::var(variable).ok();
    let (no_color, colorterm, term) = (set("NO_COLOR"), set("COLORTERM"), set("TERM"));
    let depth = ColourDepth::of(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
    let terminal = TerminalInfo::of(set);
    let settings = patterm_host::server::settings_file("tui.toml");
    let server = Box::new(ProjectServer { project });
    patterm_tui::run(Options { process, depth, terminal, settings, server })?;
    print("detached; everything keeps running, and `patterm` attaches again");
    Ok(())
}

/// The version of the layout file.
const LAYOUT_VERSION: u32 = 1;

struct ProjectServer {
    project: Project,
}

impl ProjectServer {
    fn layout_file(&self) -> Option<PathBuf> {
        Some(StateDir::from_env(self.project.key()).ok()?.file("layout.json"))
    }
}

impl ServerConnector for ProjectServer {
    fn connect(&self) -> Result<Option<UnixStream>, String> {
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
        // Tests make the TUI panic here, while it has the terminal; not possible in release builds.
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("PATTERM_BREAK").is_none(), "asked to break");
        PERSON.to_owned()
    }

    fn saved_layout(&self) -> Option<SavedLayout> {
        state::read(&self.layout_file()?, LAYOUT_VERSION).ok().flatten()
    }

    fn save_layout(&self, layout: &SavedLayout) {
        // Without it the next attachment starts with one pane; nothing else is lost.
        if let Some(file) = self.layout_file() {
            let _ = state::write(&file, LAYOUT_VERSION, layout);
        }
    }

    fn edit(&self, pad: &str) -> Result<(), String> {
        let name = pad.parse().map_err(|e| format!("NAME {e}"))?;
        pad_editor::edit(&name).map_err(|e| format!("{e:#}"))
    }
}
