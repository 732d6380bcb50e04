//! The outer loop over the terminal, the connections and the clock. It passes events to the core, performs the
//! effects, and draws when something has changed: at most sixty times a second, and additionally for each key,
//! whose echo does not wait for the next frame.

mod draw;
mod effects;
mod input;
mod layout;
mod overview;
mod probe;
mod server;
mod switch;
mod wait;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::connection::{CallConnection, FollowConnection, PaneConnection};
use crate::layout::PaneId;
use crate::log_connection::LogConnection;
use crate::model::{Mode, Model};
use crate::outer::{OuterModes, TerminalInfo};
use crate::paint::ColourDepth;
use crate::probe::TerminalFeatures;
use crate::saved_layout::SavedLayout;
use crate::settings::file::WatchedFile;
use crate::shown::ShownFrame;
use crate::terminal::Terminal;
use crate::update::{CallPurpose, Effect, Event, is_dashboard_open, update};
use patterm_screen::input::InputParser;
use patterm_wire::environment::CallerEnvironment;
use patterm_wire::requests::ServerEntry;
use patterm_wire::view::ToView;

use draw::FRAME;
use effects::UnsentInput;
use overview::OverviewLinks;
use server::Reconnect;
use wait::{SECOND, Source};
use watch::ServerWatch;

/// Connects to the server, and does what only the surrounding program can do.
pub trait ServerConnector {
    /// A connection to the project's server; `None` if there is none now.
    fn connect(&self) -> Result<Option<UnixStream>, String>;

    /// The first line of a connection for calls, which identifies the caller.
    fn greeting(&self) -> String;

    /// The user's environment and folder, for programs that are started here.
    fn environment(&self) -> CallerEnvironment;

    /// Why the server does not answer, and what to do about it.
    fn advice_if_hung(&self) -> String;

    /// The saved layout, if there is one.
    fn saved_layout(&self) -> Option<SavedLayout>;

    /// Saves a layout for the next attachment, and for terminals that share it.
    fn save_layout(&self, layout: &SavedLayout);

    /// The same without waiting for the disk.
    fn save_layout_soon(&self, layout: &SavedLayout);

    /// The file that the layout is saved in.
    fn layout_file(&self) -> Option<PathBuf>;

    /// The key of the project.
    fn key(&self) -> String;

    /// The servers of all of the user's projects, some of which may have ended. Never waits.
    fn servers(&self) -> Vec<ServerEntry>;

    /// The folders in which servers register.
    fn registries(&self) -> Vec<PathBuf>;

    /// A connection to one of those servers; `None` if it has ended, an error if it does not accept connections.
    fn connect_to(&self, server: &ServerEntry) -> Result<Option<UnixStream>, String>;

    /// What to do about a server that does not answer.
    fn advice(&self, server: &ServerEntry) -> String;

    /// The connector of another project; its folder is the current folder from then on.
    fn switch_to(&self, server: &ServerEntry) -> Result<Box<dyn ServerConnector>, String>;

    /// Makes the project's folder the current folder again.
    fn enter(&self);

    /// The time that the user means with a text, in milliseconds since 1970, or why it is not one.
    fn read_time(&self, text: &str) -> Result<u64, String>;

    /// Opens a web link in the user's browser; false if there is none.
    fn open_link(&self, link: &str) -> bool;

    /// Lets the user edit a scratchpad on the terminal.
    fn edit(&self, pad: &str) -> Result<(), String>;
}

/// What is shown, and where.
pub struct Options {
    /// The process to show first.
    pub process: Option<String>,
    /// How many colours the terminal has.
    pub depth: ColourDepth,
    /// What is known about the terminal.
    pub terminal: TerminalInfo,
    /// The prefixes of the tmux around the terminal, such as `ctrl+b`; none outside of tmux.
    pub tmux_prefixes: Vec<String>,
    /// The file with the user's keys and colours.
    pub settings: Option<PathBuf>,
    /// The path of that file, as the user is told it.
    pub settings_path: String,
    /// Seconds that local times are ahead of UTC.
    pub utc_offset: i32,
    /// How to reach the server.
    pub server: Box<dyn ServerConnector>,
}

/// Why the TUI ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no terminal, or it is gone.
    #[error("cannot use this terminal: {0}")]
    Terminal(#[from] io::Error),
    /// The server has ended, or refused to be followed.
    #[error("{0}")]
    Server(String),
    /// A bug.
    #[error("the TUI crashed, which is a bug in patterm; everything keeps running: {0}")]
    Crashed(String),
}

/// Shows the project until the user detaches.
pub fn run(options: Options) -> Result<(), Error> {
    // The message of a panic must not be drawn over the screen, nor be lost.
    let message = Arc::new(Mutex::new(String::new()));
    let before = std::panic::take_hook();
    let seen_by_hook = message.clone();
    std::panic::set_hook(Box::new(move |panic| {
        *seen_by_hook.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let outcome = catch_unwind(AssertUnwindSafe(|| Tui::enter(options)?.run()));
    let _ = std::panic::take_hook();
    std::panic::set_hook(before);
    outcome.unwrap_or_else(|_| {
        let message = message.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Error::Crashed(message.clone()))
    })
}

struct Tui {
    terminal: Terminal,
    server: Box<dyn ServerConnector>,
    depth: ColourDepth,
    model: Model,
    settings: Option<WatchedFile>,
    parser: InputParser,
    /// When something was last typed.
    typed: Instant,
    follow: Option<FollowConnection>,
    calls: Option<CallConnection>,
    logs: Option<LogConnection>,
    panes: BTreeMap<PaneId, PaneConnection>,
    /// What was typed into panes that have no connection.
    unsent: BTreeMap<PaneId, UnsentInput>,
    reconnect: Option<Reconnect>,
    /// The connections of the overview, while it is open.
    overview: Option<OverviewLinks>,
    /// The previous project, until this one was shown.
    came_from: Option<Box<dyn ServerConnector>>,
    /// Whether the server answers.
    watch: ServerWatch,
    /// The layout that was saved last, or loaded.
    saved: Option<SavedLayout>,
    /// When to save the layout.
    save_at: Option<Instant>,
    /// The layout that other terminals share.
    shared: Option<WatchedFile>,
    /// When the dashboard needs its next measurement; none is requested while it is closed.
    usage_at: Option<Instant>,
    shown: Option<ShownFrame>,
    outer: OuterModes,
    /// The title of the terminal.
    title: String,
    terminal_info: TerminalInfo,
    /// What the terminal has said about itself.
    features: TerminalFeatures,
    /// Until when more of that is expected.
    answers_until: Option<Instant>,
    /// Since when there is something to draw.
    dirty: Option<Instant>,
    damage: Damage,
    drawn: Instant,
    /// Since when some program is in a synchronized update.
    drawing: Option<Instant>,
    echo: Echo,
    /// When the key was sent whose echo is expected.
    sent: Instant,
    quit: Option<Option<String>>,
}

/// The echo of a key that was sent to the program with the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    /// None is expected.
    None,
    /// The program has not printed anything yet.
    Awaited,
    /// The program has printed something that is not drawn yet.
    Due,
}

/// What has changed since the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Only what programs show on their screens.
    Screens,
    /// Anything.
    All,
}

impl Tui {
    fn enter(options: Options) -> Result<Self, Error> {
        let terminal = Terminal::enter()?;
        let (width, height) = terminal.size();
        let now = Instant::now();
        let mut model = Model::new(width, height, options.process);
        model.project_key = options.server.key();
        model.saved_layout = options.server.saved_layout();
        model.tmux_prefixes = options.tmux_prefixes;
        model.settings_path = options.settings_path;
        model.utc_offset = options.utc_offset;
        if let Some(saved) = &model.saved_layout {
            (model.tree_hidden, model.tree_width) = (saved.tree_hidden, saved.tree_width);
        }
        let mut tui = Self {
            terminal,
            server: options.server,
            depth: options.depth,
            model,
            settings: options.settings.map(WatchedFile::new),
            parser: InputParser::default(),
            typed: now,
            follow: None,
            calls: None,
            logs: None,
            panes: BTreeMap::new(),
            unsent: BTreeMap::new(),
            reconnect: Some(Reconnect::from(now)),
            overview: None,
            came_from: None,
            watch: ServerWatch::default(),
            saved: None,
            save_at: None,
            shared: None,
            usage_at: None,
            shown: None,
            outer: OuterModes::default(),
            title: String::new(),
            terminal_info: options.terminal,
            features: TerminalFeatures::default(),
            answers_until: None,
            dirty: Some(now),
            damage: Damage::All,
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            drawing: None,
            echo: Echo::None,
            sent: now,
            quit: None,
        };
        tui.ask_terminal(now);
        tui.reload_settings();
        Ok(tui)
    }

    fn run(mut self) -> Result<(), Error> {
        let result = self.event_loop();
        self.take_late_answers();
        // The terminal first: a slow disk must not keep the user waiting.
        let Self { terminal, server, model, .. } = self;
        drop(terminal);
        if let Some(layout) = model.layout_to_save() {
            server.save_layout(&layout);
        }
        result
    }

    fn event_loop(&mut self) -> Result<(), Error> {
        loop {
            self.reconnect_if_due()?;
            self.draw_if_due()?;
            if let Some(why) = self.quit.take() {
                return why.map_or(Ok(()), |why| Err(Error::Server(why)));
            }
            for source in self.wait()? {
                if !self.serve(source)? {
                    return Ok(());
                }
            }
            self.settle_escape();
            self.save_layout_if_due();
            self.note_hung();
            if self.leader_due().is_some_and(|due| due <= Instant::now()) {
                self.handle(Event::LeaderWaited);
            }
            if self.digest_due().is_some_and(|due| due <= Instant::now()) {
                self.handle(Event::DigestDue);
            }
            self.request_usage_if_due();
            self.watch_server();
            if self.counts_down() && self.drawn.elapsed() >= SECOND {
                self.note_time();
                self.note_damage(Damage::All);
            }
        }
    }

    /// Serves a source; false when the TUI should end.
    fn serve(&mut self, source: Source) -> Result<bool, Error> {
        match source {
            Source::Terminal => return self.serve_terminal(),
            Source::Resized => {
                self.terminal.take_resized();
                let (width, height) = self.terminal.size();
                self.shown = None;
                self.handle(Event::Resized(width, height));
            }
            Source::Ending => return Ok(false),
            Source::Settings => self.reload_settings(),
            Source::Layout => self.load_shared_layout(),
            Source::Follow => self.serve_follow()?,
            Source::CallConnection => self.serve_calls(),
            Source::Logs => self.serve_logs(),
            Source::Pane(id) => self.serve_pane(id),
            Source::Registry => self.refresh_overview(),
            Source::Project(at) => self.serve_project(at),
            Source::ProjectCalls(at) => self.serve_project_calls(at),
        }
        Ok(true)
    }

    /// Reads the settings file, if it has changed.
    fn reload_settings(&mut self) {
        if let Some(text) = self.settings.as_mut().and_then(WatchedFile::poll) {
            self.handle(Event::Settings(text));
            self.watch_shared_layout();
        }
    }

    /// Passes an event to the core, and performs the effects.
    fn handle(&mut self, event: Event) {
        self.note_time();
        let (hidden, bells) = (self.is_hidden(&event), self.model.bells.len());
        if self.echo == Echo::Awaited && self.is_in_front(&event) {
            self.echo = Echo::Due;
        }
        if matches!(event, Event::Answer(CallPurpose::Usage, _)) {
            self.usage_at = Some(Instant::now() + SECOND);
        }
        let had_notice = self.model.notice.is_some();
        let is_typing = self.model.mode == Mode::Typing;
        let (is_input, is_output) = (matches!(event, Event::Input(_)), is_output(&event));
        let effects = update(&mut self.model, event);
        let is_calm = self.model.bells.len() == bells
            && !had_notice
            && self.model.notice.is_none()
            && is_typing
            && self.model.mode == Mode::Typing;
        let is_sent = |effect: &Effect| matches!(effect, Effect::Send(..));
        if is_input && is_calm && !effects.is_empty() && effects.iter().all(is_sent) {
            // A key for a program changes nothing here; its echo does.
        } else if is_output && is_calm {
            if !hidden {
                self.note_damage(Damage::Screens);
            }
        } else if !hidden || self.model.bells.len() != bells {
            self.note_damage(Damage::All);
        }
        self.note_layout();
        self.note_drawing();
        for effect in effects {
            self.perform(effect);
        }
    }

    fn note_damage(&mut self, damage: Damage) {
        if self.dirty.is_none() {
            (self.dirty, self.damage) = (Some(Instant::now()), damage);
        } else if damage == Damage::All {
            self.damage = Damage::All;
        }
    }

    /// Requests the dashboard's next measurement, a second after the last one arrived.
    fn request_usage_if_due(&mut self) {
        if self.usage_at.is_some_and(|at| at <= Instant::now()) {
            self.usage_at = None;
            self.handle(Event::UsageDue);
        }
    }

    /// Whether it is output of a pane that is not shown.
    fn is_hidden(&self, event: &Event) -> bool {
        let Event::Frame(pane, _) = event else { return false };
        let shows_past = self.model.past.as_ref().is_some_and(|bar| bar.covers(*pane));
        let is_behind = self.model.zoomed && *pane != self.model.focus;
        is_dashboard_open(&self.model) || shows_past || is_behind
    }

    /// Whether it is output of the pane with the focus.
    fn is_in_front(&self, event: &Event) -> bool {
        matches!(event, Event::Frame(pane, _) if *pane == self.model.focus)
    }

    fn note_time(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.model.now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0));
    }
}

/// Whether it is output of a program.
fn is_output(event: &Event) -> bool {
    matches!(event, Event::Frame(_, ToView::Output { .. } | ToView::Snapshot { .. }))
}
