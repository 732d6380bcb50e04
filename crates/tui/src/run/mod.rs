//! The rim: one loop over the terminal, the connections and the clock. It carries events to the
//! core and effects back, and draws when something changed: no more than sixty times a second, and
//! once more for each key, whose echo waits for no frame.

mod carry;
mod draw;
mod server;
mod typed;
mod wait;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::canvas::Canvas;
use crate::layout::PaneId;
use crate::link::{Calls, Follow, PaneLink};
use crate::model::Model;
use crate::outer::{Around, Outer};
use crate::paint::Depth;
use crate::saved_layout::SavedLayout;
use crate::settings::file::SettingsFile;
use crate::terminal::Terminal;
use crate::update::{Event, update};
use patterm_screen::input::InputParser;

use carry::Unsent;
use draw::FRAME;
use server::Looking;
use wait::{SECOND, Source};

/// The way to the server, and to what only the program around us can do.
pub trait Door {
    /// A connection to the project's server; `None` if there is none now.
    fn open(&self) -> Result<Option<UnixStream>, String>;

    /// The line that says who calls tools on a connection.
    fn greeting(&self) -> String;

    /// The layout that was saved last, if there is one.
    fn saved_layout(&self) -> Option<SavedLayout>;

    /// Saves a layout for the next attachment.
    fn save_layout(&self, layout: &SavedLayout);

    /// Lets the person edit a scratchpad; the terminal is theirs meanwhile.
    fn edit(&self, pad: &str) -> Result<(), String>;
}

/// What is shown, and where.
pub struct Options {
    /// The process to show first.
    pub process: Option<String>,
    /// How many colours the terminal has.
    pub depth: Depth,
    /// What the terminal is.
    pub around: Around,
    /// The file with the person's keys and colours.
    pub settings: Option<PathBuf>,
    /// The way to the server.
    pub door: Box<dyn Door>,
}

/// Why it could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no terminal, or it is gone.
    #[error("cannot use this terminal: {0}")]
    Terminal(#[from] io::Error),
    /// The server is gone for good, or will not be followed.
    #[error("{0}")]
    Server(String),
    /// A fault of ours.
    #[error("the TUI broke, which is a fault in patterm; what runs goes on: {0}")]
    Broke(String),
}

/// Shows the project until the person leaves.
pub fn run(options: Options) -> Result<(), Error> {
    // What a fault says must not be drawn over the screen, nor be lost.
    let said = Arc::new(Mutex::new(String::new()));
    let before = std::panic::take_hook();
    let heard = said.clone();
    std::panic::set_hook(Box::new(move |fault| {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = fault.to_string();
    }));
    let outcome = catch_unwind(AssertUnwindSafe(|| Tui::enter(options)?.run()));
    let _ = std::panic::take_hook();
    std::panic::set_hook(before);
    outcome.unwrap_or_else(|_| {
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Error::Broke(said.clone()))
    })
}

struct Tui {
    terminal: Terminal,
    door: Box<dyn Door>,
    depth: Depth,
    model: Model,
    settings: Option<SettingsFile>,
    parser: InputParser,
    /// When something was last typed.
    typed: Instant,
    follow: Option<Follow>,
    calls: Option<Calls>,
    panes: BTreeMap<PaneId, PaneLink>,
    /// What was typed into panes that have no connection now.
    unsent: BTreeMap<PaneId, Unsent>,
    looking: Option<Looking>,
    shown: Option<Canvas>,
    outer: Outer,
    /// The title that the terminal was given.
    title: String,
    around: Around,
    /// Since when something is not drawn yet.
    dirty: Option<Instant>,
    drawn: Instant,
    /// Since when some program says that it is drawing.
    drawing: Option<Instant>,
    echo: Echo,
    quit: Option<Option<String>>,
}

/// What a key that went to the program in front has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    /// None is on its way.
    None,
    /// The program has not printed anything since.
    Awaited,
    /// It has, and that is not drawn yet.
    Due,
}

impl Tui {
    fn enter(options: Options) -> Result<Self, Error> {
        let terminal = Terminal::enter()?;
        let (width, height) = terminal.size();
        let now = Instant::now();
        let mut model = Model::new(width, height, options.process);
        model.saved_layout = options.door.saved_layout();
        if let Some(saved) = &model.saved_layout {
            (model.tree_hidden, model.tree_width) = (saved.tree_hidden, saved.tree_width);
        }
        let mut tui = Self {
            terminal,
            door: options.door,
            depth: options.depth,
            model,
            settings: options.settings.map(SettingsFile::new),
            parser: InputParser::default(),
            typed: now,
            follow: None,
            calls: None,
            panes: BTreeMap::new(),
            unsent: BTreeMap::new(),
            looking: Some(Looking::from(now)),
            shown: None,
            outer: Outer::default(),
            title: String::new(),
            around: options.around,
            dirty: Some(now),
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            drawing: None,
            echo: Echo::None,
            quit: None,
        };
        tui.look_at_settings();
        Ok(tui)
    }

    fn run(mut self) -> Result<(), Error> {
        let over = self.go_on();
        // The terminal first: a slow disk keeps nobody waiting.
        let Self { terminal, door, model, .. } = self;
        drop(terminal);
        if let Some(layout) = model.layout_to_save() {
            door.save_layout(&layout);
        }
        over
    }

    fn go_on(&mut self) -> Result<(), Error> {
        loop {
            self.look_for_server()?;
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

    /// Serves one of them; false when it is over.
    fn serve(&mut self, source: Source) -> Result<bool, Error> {
        match source {
            Source::Terminal => return self.serve_terminal(),
            Source::Resized => {
                self.terminal.take_resized();
                let (width, height) = self.terminal.size();
                self.shown = None;
                self.happen(Event::Resized(width, height));
            }
            Source::Ending => return Ok(false),
            Source::Settings => self.look_at_settings(),
            Source::Follow => self.serve_follow()?,
            Source::Calls => self.serve_calls(),
            Source::Pane(id) => self.serve_pane(id),
        }
        Ok(true)
    }

    /// Takes the file of settings, if it is another than before.
    fn look_at_settings(&mut self) {
        if let Some(text) = self.settings.as_mut().and_then(SettingsFile::look) {
            self.happen(Event::Settings(text));
        }
    }

    /// Lets the core take an event, and does what it says.
    fn happen(&mut self, event: Event) {
        self.note_time();
        let (unseen, bells) = (self.is_unseen(&event), self.model.bells.len());
        if self.echo == Echo::Awaited && self.is_in_front(&event) {
            self.echo = Echo::Due;
        }
        let effects = update(&mut self.model, event);
        if !unseen || self.model.bells.len() != bells {
            self.dirty.get_or_insert_with(Instant::now);
        }
        self.note_drawing();
        for effect in effects {
            self.carry_out(effect);
        }
    }

    /// Output of a pane that is not shown draws nothing.
    fn is_unseen(&self, event: &Event) -> bool {
        let Event::Frame(pane, _) = event else { return false };
        self.model.zoomed && *pane != self.model.focus
    }

    /// Output of the pane with the focus.
    fn is_in_front(&self, event: &Event) -> bool {
        matches!(event, Event::Frame(pane, _) if *pane == self.model.focus)
    }

    fn note_time(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.model.now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0));
    }
}
