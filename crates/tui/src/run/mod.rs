//! The outer loop over the terminal, the connections and the clock. It passes events to the core, performs the
//! effects, and draws when something has changed: at most sixty times a second, and additionally for each key,
//! whose echo does not wait for the next frame.

mod draw;
mod effects;
mod input;
mod server;
mod wait;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::canvas::Canvas;
use crate::connection::{CallConnection, FollowConnection, PaneConnection};
use crate::layout::PaneId;
use crate::model::Model;
use crate::outer::{OuterModes, TerminalInfo};
use crate::paint::ColourDepth;
use crate::saved_layout::SavedLayout;
use crate::settings::file::SettingsFile;
use crate::terminal::Terminal;
use crate::update::{Event, update};
use patterm_screen::input::InputParser;

use draw::FRAME;
use effects::UnsentInput;
use server::Reconnect;
use wait::{SECOND, Source};

/// Connects to the server, and does what only the surrounding program can do.
pub trait ServerConnector {
    /// A connection to the project's server; `None` if there is none now.
    fn connect(&self) -> Result<Option<UnixStream>, String>;

    /// The first line of a connection for calls, which identifies the caller.
    fn greeting(&self) -> String;

    /// The saved layout, if there is one.
    fn saved_layout(&self) -> Option<SavedLayout>;

    /// Saves a layout for the next attachment.
    fn save_layout(&self, layout: &SavedLayout);

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
    /// The file with the user's keys and colours.
    pub settings: Option<PathBuf>,
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
    settings: Option<SettingsFile>,
    parser: InputParser,
    /// When something was last typed.
    typed: Instant,
    follow: Option<FollowConnection>,
    calls: Option<CallConnection>,
    panes: BTreeMap<PaneId, PaneConnection>,
    /// What was typed into panes that have no connection.
    unsent: BTreeMap<PaneId, UnsentInput>,
    reconnect: Option<Reconnect>,
    shown: Option<Canvas>,
    outer: OuterModes,
    /// The title of the terminal.
    title: String,
    terminal_info: TerminalInfo,
    /// Since when there is something to draw.
    dirty: Option<Instant>,
    drawn: Instant,
    /// Since when some program is in a synchronized update.
    drawing: Option<Instant>,
    echo: Echo,
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

impl Tui {
    fn enter(options: Options) -> Result<Self, Error> {
        let terminal = Terminal::enter()?;
        let (width, height) = terminal.size();
        let now = Instant::now();
        let mut model = Model::new(width, height, options.process);
        model.saved_layout = options.server.saved_layout();
        if let Some(saved) = &model.saved_layout {
            (model.tree_hidden, model.tree_width) = (saved.tree_hidden, saved.tree_width);
        }
        let mut tui = Self {
            terminal,
            server: options.server,
            depth: options.depth,
            model,
            settings: options.settings.map(SettingsFile::new),
            parser: InputParser::default(),
            typed: now,
            follow: None,
            calls: None,
            panes: BTreeMap::new(),
            unsent: BTreeMap::new(),
            reconnect: Some(Reconnect::from(now)),
            shown: None,
            outer: OuterModes::default(),
            title: String::new(),
            terminal_info: options.terminal,
            dirty: Some(now),
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            drawing: None,
            echo: Echo::None,
            quit: None,
        };
        tui.reload_settings();
        Ok(tui)
    }

    fn run(mut self) -> Result<(), Error> {
        let result = self.event_loop();
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
            if self.counts_down() && self.drawn.elapsed() >= SECOND {
                self.note_time();
                self.dirty.get_or_insert_with(Instant::now);
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
            Source::Follow => self.serve_follow()?,
            Source::CallConnection => self.serve_calls(),
            Source::Pane(id) => self.serve_pane(id),
        }
        Ok(true)
    }

    /// Reads the settings file, if it has changed.
    fn reload_settings(&mut self) {
        if let Some(text) = self.settings.as_mut().and_then(SettingsFile::poll) {
            self.handle(Event::Settings(text));
        }
    }

    /// Passes an event to the core, and performs the effects.
    fn handle(&mut self, event: Event) {
        self.note_time();
        let (hidden, bells) = (self.is_hidden(&event), self.model.bells.len());
        if self.echo == Echo::Awaited && self.is_in_front(&event) {
            self.echo = Echo::Due;
        }
        let effects = update(&mut self.model, event);
        if !hidden || self.model.bells.len() != bells {
            self.dirty.get_or_insert_with(Instant::now);
        }
        self.note_drawing();
        for effect in effects {
            self.perform(effect);
        }
    }

    /// Whether it is output of a pane that is not shown.
    fn is_hidden(&self, event: &Event) -> bool {
        let Event::Frame(pane, _) = event else { return false };
        self.model.zoomed && *pane != self.model.focus
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
