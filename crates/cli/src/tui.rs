//! `patterm` and `patterm attach`: the project on the user's terminal.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use patterm_host::registry;
use patterm_host::runtime::{self, RuntimeDir};
use patterm_host::{PANE_VARIABLE, PERSON, Project};
use patterm_keeper::{CrashGuard, TerminalRestore};
use patterm_store::clock::Clock;
use patterm_store::state::{self, StateDir};
use patterm_tui::{ColourDepth, Options, SavedLayout, ServerConnector, TerminalInfo};
use patterm_wire::environment::CallerEnvironment;
use patterm_wire::requests::ServerEntry;

use crate::print::print;
use crate::since::Since;
use crate::{hung, pad_editor, settings_path, start, tmux};

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
    let depth = ColourDepth::of(set);
    let terminal = TerminalInfo::of(set);
    let settings = patterm_host::server::settings_file(settings_path::TUI_SETTINGS);
    let (settings_path, tmux_prefixes) = (settings_path::shown(), tmux::prefixes());
    let server = Box::new(ProjectServer::new(project, Folders::default()));
    let utc_offset = chrono::Local::now().offset().local_minus_utc();
    let _restored_in_a_crash = crash_guard();
    patterm_tui::run(Options {
        process,
        depth,
        terminal,
        tmux_prefixes,
        settings,
        settings_path,
        utc_offset,
        server,
    })?;
    print("detached; everything keeps running, and `patterm` attaches again");
    Ok(())
}

/// Restores the terminal if a signal kills this process. `None` without a terminal, which the TUI reports.
fn crash_guard() -> Option<CrashGuard> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open("/dev/tty", flags, Mode::empty()).ok()?;
    let before = rustix::termios::tcgetattr(&file).ok()?;
    let restore = TerminalRestore { file, before, leave: patterm_tui::LEAVE };
    Some(patterm_keeper::restore_terminal(restore, &[]))
}

/// The version of the layout file.
const LAYOUT_VERSION: u32 = 1;

/// How long a server with a full backlog may delay the overview: a running one empties it at once.
const OTHER_PATIENCE: Duration = Duration::from_millis(50);

/// The folders in which the user was in each project, by its key.
type Folders = Rc<RefCell<BTreeMap<String, PathBuf>>>;

struct ProjectServer {
    project: Project,
    folders: Folders,
    /// Writes layouts in the background, so that a slow disk never blocks the user.
    writer: RefCell<Option<LayoutWriter>>,
}

impl ProjectServer {
    /// A project that the user enters from the current folder.
    fn new(project: Project, folders: Folders) -> Self {
        if let Ok(here) = std::env::current_dir() {
            folders.borrow_mut().entry(project.key().to_owned()).or_insert(here);
        }
        Self { project, folders, writer: RefCell::default() }
    }

    /// Goes to the folder in which the user was in a project, or to the project's folder.
    fn go_to_folder(&self, project: &Project) -> std::io::Result<()> {
        let before = self.folders.borrow().get(project.key()).cloned();
        match before.map(std::env::set_current_dir) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => std::env::set_current_dir(project.root()),
        }
    }
}

/// A thread that writes the newest layout it was given.
struct LayoutWriter {
    /// The layout to write next.
    newest: Arc<Mutex<Option<SavedLayout>>>,
    /// Holds at most one wake-up, which is enough for the newest layout.
    wake: mpsc::SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LayoutWriter {
    fn new(file: PathBuf) -> Self {
        let (wake, woken) = mpsc::sync_channel(1);
        let newest: Arc<Mutex<Option<SavedLayout>>> = Arc::default();
        let next = newest.clone();
        let thread = std::thread::spawn(move || {
            while woken.recv().is_ok() {
                let layout = next.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(layout) = layout {
                    write_layout(&file, &layout);
                }
            }
        });
        Self { newest, wake, thread }
    }

    fn write_soon(&self, layout: &SavedLayout) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(layout.clone());
        let _ = self.wake.try_send(());
    }
}

fn write_layout(file: &Path, layout: &SavedLayout) {
    // If this fails, the next attachment starts with one pane; nothing else is lost.
    let _ = state::write(file, LAYOUT_VERSION, layout);
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

    fn environment(&self) -> CallerEnvironment {
        let environment = start::caller_environment(std::env::vars_os());
        let environment =
            environment.unwrap_or_else(|_| CallerEnvironment::new(std::env::vars_os()));
        CallerEnvironment { attaches: true, ..environment }
    }

    fn advice_if_hung(&self) -> String {
        let folders = RuntimeDir::candidates(None);
        let state = StateDir::from_env(self.project.key()).ok();
        let entry = registry::find(self.project.key(), &folders, state.as_ref()).into_iter().next();
        hung::advice(&entry.map(|entry| entry.socket).unwrap_or_default())
    }

    fn saved_layout(&self) -> Option<SavedLayout> {
        state::read(&self.layout_file()?, LAYOUT_VERSION).ok().flatten()
    }

    fn save_layout(&self, layout: &SavedLayout) {
        // The layout that is written last must be the newest.
        if let Some(LayoutWriter { wake, thread, .. }) = self.writer.take() {
            drop(wake);
            let _ = thread.join();
        }
        if let Some(file) = self.layout_file() {
            write_layout(&file, layout);
        }
    }

    fn save_layout_soon(&self, layout: &SavedLayout) {
        let mut writer = self.writer.borrow_mut();
        if writer.is_none() {
            *writer = self.layout_file().map(LayoutWriter::new);
        }
        if let Some(writer) = &*writer {
            writer.write_soon(layout);
        }
    }

    fn layout_file(&self) -> Option<PathBuf> {
        Some(StateDir::from_env(self.project.key()).ok()?.file("layout.json"))
    }

    fn key(&self) -> String {
        self.project.key().to_owned()
    }

    fn servers(&self) -> Vec<ServerEntry> {
        registry::entries(&RuntimeDir::candidates(None))
    }

    fn registries(&self) -> Vec<PathBuf> {
        RuntimeDir::candidates(None).iter().map(|folder| folder.folder().to_owned()).collect()
    }

    fn connect_to(&self, server: &ServerEntry) -> Result<Option<UnixStream>, String> {
        runtime::connect_within(&server.socket, OTHER_PATIENCE).map_err(|e| e.to_string())
    }

    fn advice(&self, server: &ServerEntry) -> String {
        hung::advice_for(server.pid)
    }

    fn switch_to(&self, server: &ServerEntry) -> Result<Box<dyn ServerConnector>, String> {
        // It would show itself inside itself, endlessly.
        let pane = std::env::var(PANE_VARIABLE).unwrap_or_default();
        if let Some((_, id)) = pane.split_once('/').filter(|(key, _)| *key == server.key) {
            return Err(format!("this terminal is pane {id} of that project"));
        }
        let project = Project::of(&server.project).map_err(|e| e.to_string())?;
        self.go_to_folder(&project)
            .map_err(|e| format!("cannot go to {}: {e}", server.project.display()))?;
        Ok(Box::new(Self::new(project, self.folders.clone())))
    }

    fn enter(&self) {
        // If the folder is gone, verbs that need it say so.
        let _ = self.go_to_folder(&self.project);
    }

    fn read_time(&self, text: &str) -> Result<u64, String> {
        text.parse::<Since>()?.moment(&Since::now(Clock::system().wall_ms()))
    }

    #[expect(clippy::disallowed_methods, reason = "the user's browser, outside of all panes")]
    fn open_link(&self, link: &str) -> bool {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let has_display = set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).is_some();
        let browser = set("BROWSER").or_else(|| has_display.then(|| "xdg-open".to_owned()));
        // `BROWSER` may be a list.
        let Some(program) = browser.as_deref().and_then(|list| list.split(':').next()) else {
            return false;
        };
        let mut command = std::process::Command::new(program);
        let (none, out) = (std::process::Stdio::null(), std::process::Stdio::null);
        let started = command.arg(link).stdin(none).stdout(out()).stderr(out()).spawn();
        let Ok(mut browser) = started else { return false };
        // It may run as long as the browser, and must be reaped when it exits.
        std::thread::spawn(move || browser.wait());
        true
    }

    fn edit(&self, pad: &str) -> Result<(), String> {
        let name = pad.parse().map_err(|e| format!("NAME {e}"))?;
        pad_editor::edit(&name).map_err(|e| format!("{e:#}"))
    }
}
