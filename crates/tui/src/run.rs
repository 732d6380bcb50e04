//! The rim: one loop over the terminal, the connections and the clock. It carries events to the
//! core and effects back, and draws when something changed: no more than sixty times a second, and
//! once more for each key, whose echo waits for no frame.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use patterm_wire::view::FromView;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::canvas::Canvas;
use crate::input::Parser;
use crate::layout::PaneId;
use crate::link::{Broken, Calls, Follow, FromPane, PaneLink, Told};
use crate::model::{Listed, Mode, Model};
use crate::outer::{self, Outer};
use crate::paint::{Depth, paint};
use crate::terminal::Terminal;
use crate::update::{Asked, Effect, Event, update};
use crate::view::view;

/// The time of one frame: sixty a second.
const FRAME: Duration = Duration::from_micros(16_667);

/// How long an escape may be the beginning of something: longer than a terminal needs for the rest
/// over a slow line, shorter than a person notices.
const ESCAPE: Duration = Duration::from_millis(30);

/// A program that says it is drawing is believed for so long.
const DRAWING: Duration = Duration::from_millis(100);

/// Between two looks for a server that is gone, at first and at the most.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A server that is not back after this was ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// Bytes that may wait for a server that is away: more than anybody types meanwhile.
const UNSENT_BYTES: usize = 64 << 10;

/// How often a countdown that is shown is drawn.
const SECOND: Duration = Duration::from_secs(1);

/// Bytes read from the terminal in one go.
const READ_BYTES: usize = 16 << 10;

/// The way to the server, and to what only the program around us can do.
pub trait Door {
    /// A connection to the project's server; `None` if there is none now.
    fn open(&self) -> Result<Option<UnixStream>, String>;

    /// The line that says who calls tools on a connection.
    fn greeting(&self) -> String;

    /// Lets the person edit a scratchpad; the terminal is theirs meanwhile.
    fn edit(&self, pad: &str) -> Result<(), String>;
}

/// What is shown, and where.
pub struct Options {
    /// The process to show first.
    pub process: Option<String>,
    /// How many colours the terminal has.
    pub depth: Depth,
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

/// The search for a server that is gone.
struct Looking {
    next: Instant,
    pause: Duration,
    until: Instant,
}

struct Tui {
    terminal: Terminal,
    door: Box<dyn Door>,
    depth: Depth,
    model: Model,
    parser: Parser,
    /// When something was last typed.
    typed: Instant,
    follow: Option<Follow>,
    calls: Option<Calls>,
    panes: BTreeMap<PaneId, PaneLink>,
    /// What was typed into panes that have no connection now.
    unsent: BTreeMap<PaneId, Vec<u8>>,
    looking: Option<Looking>,
    shown: Option<Canvas>,
    outer: Outer,
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

/// Which of them has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Terminal,
    Resized,
    Ending,
    Follow,
    Calls,
    Pane(PaneId),
}

impl Tui {
    fn enter(options: Options) -> Result<Self, Error> {
        let terminal = Terminal::enter()?;
        let (width, height) = terminal.size();
        let now = Instant::now();
        let looking = Looking { next: now, pause: LOOK_AGAIN.0, until: now + PATIENCE };
        Ok(Self {
            terminal,
            door: options.door,
            depth: options.depth,
            model: Model::new(width, height, options.process),
            parser: Parser::default(),
            typed: now,
            follow: None,
            calls: None,
            panes: BTreeMap::new(),
            unsent: BTreeMap::new(),
            looking: Some(looking),
            shown: None,
            outer: Outer::default(),
            dirty: Some(now),
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            drawing: None,
            echo: Echo::None,
            quit: None,
        })
    }

    fn run(mut self) -> Result<(), Error> {
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

    /// Waits until something has something.
    fn wait(&self) -> Result<Vec<Source>, Error> {
        let write =
            |wants: bool| if wants { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut sources = vec![Source::Terminal, Source::Resized, Source::Ending];
        let behind = self.terminal.is_behind();
        let mut watched = vec![
            PollFd::from_borrowed_fd(self.terminal.file(), write(behind)),
            PollFd::from_borrowed_fd(self.terminal.resized(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.terminal.ending(), PollFlags::IN),
        ];
        if let Some(follow) = &self.follow {
            sources.push(Source::Follow);
            watched.push(PollFd::from_borrowed_fd(follow.file(), PollFlags::IN));
        }
        if let Some(calls) = &self.calls {
            sources.push(Source::Calls);
            watched.push(PollFd::from_borrowed_fd(calls.file(), write(calls.wants_to_write())));
        }
        for (id, pane) in &self.panes {
            sources.push(Source::Pane(*id));
            watched.push(PollFd::from_borrowed_fd(pane.file(), write(pane.wants_to_write())));
        }
        let timeout = self.next_deadline().map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(e) => return Err(io::Error::from(e).into()),
        }
        let ready = watched.iter().map(|watched| !watched.revents().is_empty());
        Ok(sources
            .into_iter()
            .zip(ready)
            .filter_map(|(source, ready)| ready.then_some(source))
            .collect())
    }

    /// When to look up without being told to; never at rest.
    fn next_deadline(&self) -> Option<Instant> {
        let draw = self.dirty.filter(|_| !self.terminal.is_behind()).map(|_| self.draw_at());
        let escape = self.parser.is_waiting().then(|| self.typed + ESCAPE);
        let look = self.looking.as_ref().map(|looking| looking.next);
        let second = self.counts_down().then(|| self.drawn + SECOND);
        [draw, escape, look, second].into_iter().flatten().min()
    }

    /// A countdown is shown.
    fn counts_down(&self) -> bool {
        let open = matches!(self.model.mode, Mode::List { listed: Listed::Timers, .. });
        open && !self.model.seen.timers.is_empty()
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
            Source::Follow => self.serve_follow()?,
            Source::Calls => self.serve_calls(),
            Source::Pane(id) => self.serve_pane(id),
        }
        Ok(true)
    }

    fn serve_terminal(&mut self) -> Result<bool, Error> {
        self.terminal.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        // The terminal closing is a detach.
        let Some(bytes) = self.terminal.read(&mut buffer) else { return Ok(false) };
        if bytes.is_empty() {
            return Ok(true);
        }
        self.parser.feed(bytes);
        self.typed = Instant::now();
        while let Some(token) = self.parser.next() {
            self.happen(Event::Input(token));
        }
        Ok(true)
    }

    /// An escape that nothing followed is the key.
    fn settle_escape(&mut self) {
        if self.parser.is_waiting() && self.typed.elapsed() >= ESCAPE {
            while let Some(token) = self.parser.settle() {
                self.happen(Event::Input(token));
            }
        }
    }

    fn serve_follow(&mut self) -> Result<(), Error> {
        let Some(follow) = &mut self.follow else { return Ok(()) };
        match follow.read() {
            Ok(Some(Told::Seen(seen))) => {
                self.looking = None;
                self.happen(Event::Seen(seen));
            }
            Ok(Some(Told::Ended)) => self.happen(Event::GaveUp),
            Ok(Some(Told::Refused(why))) => return Err(Error::Server(why)),
            Ok(None) => {}
            Err(Broken) => self.lose(),
        }
        Ok(())
    }

    /// The server is gone; it is looked for from now on.
    fn lose(&mut self) {
        self.follow = None;
        self.panes.clear();
        self.drop_calls();
        if self.looking.is_none() {
            let now = Instant::now();
            let until = now + PATIENCE;
            self.looking = Some(Looking { next: now, pause: LOOK_AGAIN.0, until });
        }
        self.happen(Event::Lost);
    }

    fn drop_calls(&mut self) {
        for asked in self.calls.take().map(Calls::give_up).unwrap_or_default() {
            let why = "the server ended while it was asked".to_owned();
            self.happen(Event::Answer(asked, Err(why)));
        }
    }

    fn look_for_server(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let Some(looking) = &mut self.looking else { return Ok(()) };
        if looking.next > now {
            return Ok(());
        }
        if looking.until <= now {
            self.looking = None;
            self.happen(Event::GaveUp);
            return Ok(());
        }
        looking.next = now + looking.pause;
        looking.pause = (looking.pause * 2).min(LOOK_AGAIN.1);
        if self.follow.is_none() {
            let stream = self.door.open().map_err(Error::Server)?;
            self.follow = stream.and_then(|stream| Follow::begin(stream).ok());
        }
        Ok(())
    }

    fn serve_calls(&mut self) {
        let Some(calls) = &mut self.calls else { return };
        match calls.serve() {
            Ok(answers) => {
                for (asked, answer) in answers {
                    self.happen(Event::Answer(asked, answer));
                }
            }
            Err(Broken) => self.drop_calls(),
        }
    }

    fn serve_pane(&mut self, id: PaneId) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        match pane.serve() {
            Ok(came) => {
                for came in came {
                    self.happen(match came {
                        FromPane::Frame(frame) => Event::Frame(id, frame),
                        FromPane::Refused(why) => Event::PaneRefused(id, why),
                    });
                }
            }
            Err(Broken) => {
                self.panes.remove(&id);
                self.happen(Event::PaneLost(id));
            }
        }
    }

    /// Lets the core take an event, and does what it says.
    fn happen(&mut self, event: Event) {
        self.note_time();
        if !self.is_unseen(&event) {
            self.dirty.get_or_insert_with(Instant::now);
        }
        if self.echo == Echo::Awaited && self.is_in_front(&event) {
            self.echo = Echo::Due;
        }
        let effects = update(&mut self.model, event);
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

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Attach { pane, process, size } => {
                self.panes.remove(&pane);
                let stream = self.door.open().ok().flatten();
                let link = stream.and_then(|s| PaneLink::begin(s, &process, size).ok());
                if let Some(link) = link {
                    self.panes.insert(pane, link);
                    let unsent = self.unsent.remove(&pane).unwrap_or_default();
                    self.send(pane, unsent);
                }
            }
            Effect::Leave(pane) => {
                self.panes.remove(&pane);
                self.unsent.remove(&pane);
            }
            Effect::Send(pane, bytes) => {
                if pane == self.model.focus && self.echo == Echo::None {
                    self.echo = Echo::Awaited;
                }
                self.send(pane, bytes);
            }
            Effect::Size(pane, size) => self.tell_pane(pane, |pane| pane.resize(size)),
            Effect::Call { tool, arguments, asked } => self.call(tool, &arguments, asked),
            Effect::Copy(text) => self.terminal.push(&outer::copy(&text)),
            Effect::Notify(text) => self.terminal.push(&outer::notify(&text)),
            Effect::Edit(pad) => self.edit(&pad),
            Effect::Quit(why) => self.quit = Some(why),
        }
    }

    /// Types into a pane. What is typed while the server is away waits for it.
    fn send(&mut self, id: PaneId, bytes: Vec<u8>) {
        if self.panes.contains_key(&id) {
            if !bytes.is_empty() {
                self.tell_pane(id, |pane| pane.say(&FromView::Input(bytes)));
            }
            return;
        }
        let unsent = self.unsent.entry(id).or_default();
        if unsent.len() + bytes.len() <= UNSENT_BYTES {
            unsent.extend(bytes);
        }
    }

    fn tell_pane(&mut self, id: PaneId, say: impl FnOnce(&mut PaneLink) -> Result<(), Broken>) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        if say(pane).is_err() {
            self.panes.remove(&id);
        }
    }

    fn call(&mut self, tool: &str, arguments: &serde_json::Value, asked: Asked) {
        if self.calls.is_none() {
            let stream = self.door.open().ok().flatten();
            let greeting = self.door.greeting();
            self.calls = stream.and_then(|stream| Calls::begin(stream, &greeting).ok());
        }
        match &mut self.calls {
            Some(calls) => {
                if calls.call(tool, arguments, asked).is_err() {
                    self.drop_calls();
                }
            }
            None => {
                let why = "there is no server now; it is waited for".to_owned();
                self.happen(Event::Answer(asked, Err(why)));
            }
        }
    }

    fn edit(&mut self, pad: &str) {
        let door = &self.door;
        let edited = self.terminal.lend(|| door.edit(pad));
        (self.shown, self.outer) = (None, Outer::default());
        let (width, height) = self.terminal.size();
        self.happen(Event::Resized(width, height));
        if let Ok(Err(why)) = edited {
            self.happen(Event::Answer(Asked::Nothing, Err(why)));
        }
    }

    /// When the next picture is due: an echo at once; and not while a program that is shown says
    /// that it is drawing, as long as that is believed.
    fn draw_at(&self) -> Instant {
        let due = if self.echo == Echo::Due { self.drawn } else { self.drawn + FRAME };
        self.drawing.map_or(due, |since| due.max(since + DRAWING))
    }

    /// Notes since when programs have been drawing without an end.
    fn note_drawing(&mut self) {
        let drawing = |pane: &crate::model::Pane| pane.screen.modes().synchronized;
        match self.model.panes.values().any(drawing) {
            true => self.drawing = self.drawing.or_else(|| Some(Instant::now())),
            false => self.drawing = None,
        }
    }

    /// Draws, if something changed, the last picture is out, and it is time.
    fn draw_if_due(&mut self) -> Result<(), Error> {
        if self.dirty.is_none() || self.terminal.is_behind() || self.draw_at() > Instant::now() {
            self.terminal.flush()?;
            return Ok(());
        }
        let next = view(&self.model);
        let outer = Outer::of(&self.model);
        let switch = self.outer.switch(outer);
        self.terminal.push(&switch);
        self.terminal.push(&paint(self.shown.as_ref(), &next, self.depth));
        self.terminal.flush()?;
        self.outer = outer;
        self.shown = Some(next);
        self.dirty = None;
        self.drawn = Instant::now();
        if self.echo == Echo::Due {
            self.echo = Echo::None;
        }
        Ok(())
    }
}
