//! The thread that reads PTYs into their logs, writes queued input to them, and serves the views. It interprets only the
//! echo of a key, which it has parsed: key and echo pass through this thread alone.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use patterm_keeper::log::Log;
use patterm_keeper::{Pane, PaneEvent, timespec};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::Event;
use super::echoes::Echoes;
use super::ending::RunEnd;
use super::output_clock::OutputClock;
use super::parser::OutputParser;
use super::reading::{Reading, Room};
use super::run::ProcessRun;
use super::view::{View, ViewNews};
use super::view_set::ViewSet;
use crate::offset::Offset;
use crate::process::Exit;
use patterm_store::clock::Clock;
use patterm_store::sync::lock;

/// Bytes read from one pane before the next has its turn, so that 200 floods do not starve a shell.
const TURN_BYTES: u64 = 16 << 10;

/// The size of one read: more than a terminal ever returns at once.
const READ_BYTES: usize = 16 << 10;

/// How soon a pane is read again that has no room for new output because its oldest output is still in use.
const STALLED_AGAIN: Duration = Duration::from_millis(10);

/// How often the disk is checked for free space while it is full.
const TROUBLE_AGAIN: Duration = Duration::from_secs(1);

/// The epoll key of the wake-up descriptor.
const WAKEUP: u64 = u64::MAX;

/// The epoll key of all views.
const VIEWS: u64 = u64::MAX - 1;

/// Output that this thread has parsed at once after a key: more than the echo and a prompt. Of a flood it is little.
const ECHO_BYTES: u64 = 8 << 10;

#[derive(Debug)]
enum Command {
    Add(Box<Reading>),
    Remove(Arc<ProcessRun>),
    Write(Arc<ProcessRun>),
    Resume(Arc<ProcessRun>),
    /// There is parsed output for the views of a process.
    Parsed(Arc<ProcessRun>),
    Attach(Box<View>),
    Detach(Arc<ViewNews>),
}

#[derive(Debug)]
pub(super) struct Reader {
    epoll: OwnedFd,
    wakeup: OwnedFd,
    commands: Mutex<Vec<Command>>,
    /// The time of output. Only the reader's thread uses it.
    clock: Mutex<OutputClock>,
}

type Panes = HashMap<u64, Reading>;

/// What the reader's thread has in hand.
#[derive(Debug)]
struct State {
    panes: Panes,
    /// The last token of a pane.
    last: u64,
    echoes: Echoes,
    views: ViewSet,
}

impl Reader {
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wakeup, EventData::new_u64(WAKEUP), EventFlags::IN)?;
        let clock = Mutex::new(OutputClock::new(clock));
        Ok(Self { epoll, wakeup, commands: Mutex::default(), clock })
    }

    pub(super) fn add(&self, run: Arc<ProcessRun>, pane: Arc<Pane>, log: Log) {
        // Before anything is typed into it: a full terminal must not block a thread.
        if let Err(error) = make_nonblocking(&pane) {
            tracing::error!(%error, id = %run.id, "cannot make a pane's terminal non-blocking");
        }
        self.send(Command::Add(Box::new(Reading::new(run, pane, log))));
    }

    pub(super) fn remove(&self, run: &Arc<ProcessRun>) {
        self.send(Command::Remove(run.clone()));
    }

    pub(super) fn write(&self, run: &Arc<ProcessRun>) {
        self.send(Command::Write(run.clone()));
    }

    pub(super) fn resume(&self, run: &Arc<ProcessRun>) {
        self.send(Command::Resume(run.clone()));
    }

    /// Called by the parser: a view of this run waits for output, and there is some.
    pub(super) fn parsed(&self, run: &Arc<ProcessRun>) {
        self.send(Command::Parsed(run.clone()));
    }

    /// Serves a view until its client is gone or it is detached.
    pub(super) fn attach(&self, view: View) {
        self.send(Command::Attach(Box::new(view)));
    }

    pub(super) fn detach(&self, news: &Arc<ViewNews>) {
        self.send(Command::Detach(news.clone()));
    }

    fn send(&self, command: Command) {
        lock(&self.commands).push(command);
        self.notify();
    }

    /// Wakes this thread.
    pub(super) fn notify(&self) {
        // An error means that a wake-up is already pending.
        let _ = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    pub(super) fn run(&self, parser: &OutputParser, events: &mpsc::Sender<Event>) {
        let views = match self.views() {
            Ok(views) => views,
            Err(error) => {
                tracing::error!(%error, "the reader stops: it cannot serve views");
                return;
            }
        };
        let mut state = State { panes: Panes::new(), last: 0, echoes: Echoes::default(), views };
        let mut ready = Vec::with_capacity(256);
        // Output of panes that are held back for an echo.
        let mut others_wait = false;
        while !events.is_closed() {
            let now = Instant::now();
            if others_wait && let Some(time) = state.echoes.hold(now) {
                self.wait_for_echo(time, &state);
                self.run_commands(&mut state, parser);
                self.serve_views(&mut state);
                self.look_for_echoes(&mut state, parser);
                continue;
            }
            others_wait = false;
            let stalled = state.panes.values().any(|reading| reading.stalled);
            let troubled = state.panes.values().any(|reading| reading.troubled);
            let pause = match (stalled, troubled) {
                (true, _) => Some(STALLED_AGAIN),
                (false, true) => Some(TROUBLE_AGAIN),
                (false, false) => None,
            };
            let due = state.views.next_due().map(|due| due.saturating_duration_since(now));
            let pause = pause.into_iter().chain(due).min().map(timespec);
            ready.clear();
            let spare = rustix::buffer::spare_capacity(&mut ready);
            match epoll::wait(&self.epoll, spare, pause.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "the reader stops: waiting for events failed");
                    return;
                }
            }
            // A key waits for no pane.
            let is_pane = |key: u64| !matches!(key, WAKEUP | VIEWS);
            for event in ready.iter().filter(|event| !is_pane(event.data.u64())) {
                match event.data.u64() {
                    WAKEUP => self.run_commands(&mut state, parser),
                    _ => self.serve_views(&mut state),
                }
            }
            if due.is_some() {
                self.serve_due_views(&mut state);
            }
            for event in ready.iter().filter(|event| is_pane(event.data.u64())) {
                let key = event.data.u64();
                let holds = state.echoes.hold(Instant::now()).is_some();
                if holds && !state.echoes.is_typed_into(key / 2) {
                    // It is reported again afterwards.
                    others_wait = true;
                    continue;
                }
                self.serve(key, event.flags, &mut state, parser);
                if ready.len() > 1 {
                    // Keys and echoes wait for one other pane at most, not for all of them.
                    if !lock(&self.commands).is_empty() {
                        self.run_commands(&mut state, parser);
                    }
                    self.serve_views(&mut state);
                    self.look_for_echoes(&mut state, parser);
                }
            }
            if stalled {
                self.retry(&mut state, parser);
            }
            if troubled {
                look_for_room(&mut state.panes, parser);
            }
        }
    }

    /// The set for views, whose events wake this thread up.
    fn views(&self) -> io::Result<ViewSet> {
        let views = ViewSet::new()?;
        epoll::add(&self.epoll, views.file(), EventData::new_u64(VIEWS), EventFlags::IN)?;
        Ok(views)
    }

    /// Sleeps until a pane that was typed into prints something, an echo is parsed, a view needs something, or the time
    /// is over.
    fn wait_for_echo(&self, time: Timespec, state: &State) {
        let awaited = state.echoes.typed_into().filter_map(|token| state.panes.get(&token));
        let can_be_read =
            |reading: &&Reading| !reading.closed && !reading.stalled && !reading.is_paused();
        let awaited = awaited.filter(can_be_read);
        let mut polled = vec![
            PollFd::new(&self.wakeup, PollFlags::IN),
            PollFd::from_borrowed_fd(state.views.file(), PollFlags::IN),
        ];
        polled.extend(
            awaited.map(|reading| PollFd::from_borrowed_fd(reading.pane.master(), PollFlags::IN)),
        );
        let _ = poll(&mut polled, Some(&time));
    }

    /// Reads the panes that were typed into, to see whether they have printed something.
    fn look_for_echoes(&self, state: &mut State, parser: &OutputParser) {
        for token in state.echoes.tokens_to_look_at() {
            let can_be_read =
                |reading: &Reading| !reading.is_paused() && !reading.closed && !reading.stalled;
            if !state.panes.get(&token).is_some_and(can_be_read) {
                state.echoes.forget(token);
                continue;
            }
            self.serve(token * 2, EventFlags::IN, state, parser);
        }
    }

    fn run_commands(&self, state: &mut State, parser: &OutputParser) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wakeup, &mut count);
        for command in std::mem::take(&mut *lock(&self.commands)) {
            match command {
                Command::Add(reading) => self.take(*reading, state, parser),
                Command::Remove(run) => {
                    if let Some((token, reading)) = find(&mut state.panes, &run) {
                        let _ = epoll::delete(&self.epoll, reading.pane.master());
                        let _ = epoll::delete(&self.epoll, reading.pane.events());
                        state.panes.remove(&token);
                    }
                }
                Command::Write(run) => self.write_input(&run, state),
                Command::Resume(run) => {
                    if let Some((token, reading)) = find(&mut state.panes, &run) {
                        self.arm(token, reading);
                    }
                }
                Command::Parsed(run) => self.send_to_views(&run, state),
                Command::Attach(view) => match state.views.add(*view) {
                    Ok(token) => {
                        let run = state.views.get(token).map(|view| view.run.clone());
                        self.serve_view(token, false, state);
                        // The terminal may have got another size for it.
                        run.inspect(|run| self.send_to_views(run, state));
                    }
                    // The view is dropped, and its connection with it.
                    Err(error) => tracing::error!(%error, "cannot serve a view"),
                },
                Command::Detach(news) => {
                    if let Some(token) = state.views.with(&news) {
                        self.drop_view(token, state);
                    }
                }
            }
        }
    }

    /// Begins to read a pane.
    fn take(&self, mut reading: Reading, state: &mut State, parser: &OutputParser) {
        state.last += 1;
        let token = state.last;
        reading.run.reader.set_token(token);
        if let Err(error) = self.watch(token, &reading) {
            tracing::error!(%error, id = %reading.run.id, "cannot watch a pane for output");
        }
        if !reading.log.is_open() {
            let room = reading.make_room(Instant::now(), parser);
            tracing::error!(id = %reading.run.id, ?room, "the log of a process is not open");
        }
        lock(&self.clock).continue_after(reading.log.last_time().unwrap_or_default());
        // An earlier server may have died before it recorded the end of the program.
        self.handle_init(&mut reading, parser);
        state.panes.insert(token, reading);
    }

    /// Writes the queued input of a pane. If a person typed it, the echo is awaited.
    fn write_input(&self, run: &Arc<ProcessRun>, state: &mut State) {
        let Some((token, reading)) = find(&mut state.panes, run) else { return };
        self.flush(token, reading);
        if run.typing.is_echo_expected() {
            reading.echo_bytes = ECHO_BYTES;
            state.echoes.wait_for(token, Instant::now());
        }
    }

    /// Serves the views that have something to read or to write.
    fn serve_views(&self, state: &mut State) {
        for token in state.views.ready() {
            self.serve_view(token, true, state);
        }
    }

    /// Serves the views whose time has come.
    fn serve_due_views(&self, state: &mut State) {
        for token in state.views.due(Instant::now()) {
            self.serve_view(token, false, state);
        }
    }

    /// Handles what the client of a view sent, and sends it what there is.
    fn serve_view(&self, token: u64, is_ready: bool, state: &mut State) {
        let now = Instant::now();
        let Some(view) = state.views.get(token) else { return };
        let run = view.run.clone();
        let received = if is_ready { view.receive() } else { Ok(true) };
        let heard = match received {
            Ok(true) => view.hear(now),
            Ok(false) => return self.drop_view(token, state),
            Err(error) => Err(error),
        };
        let Ok(heard) = heard else { return self.drop_view(token, state) };
        if heard.input || heard.resized {
            self.write_input(&run, state);
        }
        run.record_draft();
        match heard.resized {
            true => self.send_to_views(&run, state),
            false => self.send_to_view(token, state),
        }
    }

    /// Sends the views of a process what there is.
    fn send_to_views(&self, run: &Arc<ProcessRun>, state: &mut State) {
        for token in state.views.of(run) {
            self.send_to_view(token, state);
        }
    }

    fn send_to_view(&self, token: u64, state: &mut State) {
        let Some(view) = state.views.get(token) else { return };
        match view.send(Instant::now()) {
            Ok(()) => state.views.arm(token),
            Err(_) => self.drop_view(token, state),
        }
    }

    /// Ends a view, whose client is gone.
    fn drop_view(&self, token: u64, state: &mut State) {
        let Some(view) = state.views.remove(token) else { return };
        if view.leave() {
            self.write_input(&view.run, state);
            self.send_to_views(&view.run, state);
        }
    }

    /// The epoll key of a pane's terminal is twice its token, that of its init the next number.
    fn watch(&self, token: u64, reading: &Reading) -> io::Result<()> {
        let pane = &reading.pane;
        let terminal = EventData::new_u64(token * 2);
        epoll::add(&self.epoll, pane.master(), terminal, EventFlags::IN)?;
        let init = EventData::new_u64(token * 2 + 1);
        epoll::add(&self.epoll, pane.events(), init, EventFlags::IN)?;
        Ok(())
    }

    fn serve(&self, event: u64, flags: EventFlags, state: &mut State, parser: &OutputParser) {
        let token = event / 2;
        let Some(reading) = state.panes.get_mut(&token) else { return };
        if event % 2 == 1 {
            self.handle_init(reading, parser);
            return;
        }
        if flags.contains(EventFlags::OUT) {
            self.flush(event / 2, reading);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            reading.log.set_time(lock(&self.clock).now());
            // One read returns at most 4 KiB, and a poll for more costs as much as the next read.
            let before = reading.log.end();
            while self.read(event / 2, reading, parser)
                && reading.log.end() < before + TURN_BYTES
                && !reading.is_paused()
            {}
            let read = reading.log.end() - before;
            if read == 0 {
                return;
            }
            reading.advance_mark(parser);
            let run = reading.run.clone();
            if state.echoes.printed(token, &run) {
                run.reader.await_parse();
            }
            if read > reading.echo_bytes {
                reading.echo_bytes = 0;
                parser.push(&run);
            } else {
                reading.echo_bytes -= read;
                parser.parse_now(&run);
                self.send_to_views(&run, state);
            }
        }
    }

    /// Reads once. Returns whether there may be more.
    fn read(&self, token: u64, reading: &mut Reading, parser: &OutputParser) -> bool {
        if !reading.log.has_room() && reading.make_room(Instant::now(), parser) == Room::Soon {
            self.stall(reading);
            return false;
        }
        let before = reading.log.end();
        match reading.log.read_from(reading.pane.master(), READ_BYTES) {
            Ok(read) if read > 0 => {
                reading.run.release_parsed();
                let read = reading.log.end() - before;
                if parser.is_behind(&reading.run, read) {
                    reading.run.reader.pause();
                    self.arm(token, reading);
                }
                return true;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return true,
            // The file was truncated from outside: the log continues in another.
            Err(e) if e.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
                tracing::error!(id = %reading.run.id, "a file of its log was truncated; continuing in a new one");
                return true;
            }
            // A closed terminal returns this error.
            Err(e) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => self.close(reading),
            Ok(_) => self.close(reading),
            Err(error) => {
                tracing::error!(id = %reading.run.id, %error, "cannot read a terminal; trying again");
                self.stall(reading);
            }
        }
        false
    }

    /// Stops reading a pane for a moment; its output waits in the kernel.
    fn stall(&self, reading: &mut Reading) {
        // Removed from epoll: a terminal that hung up would wake this thread all the time.
        let _ = epoll::delete(&self.epoll, reading.pane.master());
        reading.stalled = true;
    }

    /// Handles the end of a terminal.
    fn close(&self, reading: &mut Reading) {
        reading.closed = true;
        let _ = epoll::delete(&self.epoll, reading.pane.master());
        reading.run.typing.discard();
    }

    /// Handles an event of an init. If its program ended, the rest of the output is read before the end is announced.
    fn handle_init(&self, reading: &mut Reading, parser: &OutputParser) {
        let event = reading.pane.next_event();
        if event == PaneEvent::Gone {
            let _ = epoll::delete(&self.epoll, reading.pane.events());
        }
        let status = reading.pane.status().ok().flatten();
        if event == PaneEvent::Gone || status.is_some_and(|status| status.empty) {
            reading.run.set_empty();
        }
        let exit = status.and_then(|status| status.exit);
        if reading.ended || (exit.is_none() && event != PaneEvent::Gone) {
            return;
        }
        reading.ended = true;
        reading.end = Some(RunEnd::from(exit.map(Exit::from)));
        self.read_rest(reading, parser);
    }

    /// Reads the rest of the output of a program that ended, and then announces the end.
    fn read_rest(&self, reading: &mut Reading, parser: &OutputParser) {
        reading.log.set_time(lock(&self.clock).now());
        while !reading.closed && !reading.stalled && self.read(0, reading, parser) {}
        if reading.stalled {
            // The end is announced after a retry has read the rest.
            parser.push(&reading.run);
            return;
        }
        if let Some(end) = reading.end.take() {
            reading.run.parser.ending.announce(end, Offset::new(reading.log.end()));
        }
        parser.push(&reading.run);
    }

    fn flush(&self, token: u64, reading: &mut Reading) {
        if reading.closed {
            return;
        }
        let writing = !reading.run.flush();
        if writing != reading.writing {
            reading.writing = writing;
            self.arm(token, reading);
        }
    }

    /// Sets the events of a terminal that epoll reports.
    fn arm(&self, token: u64, reading: &Reading) {
        if reading.closed || reading.stalled || token == 0 {
            return;
        }
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !reading.is_paused());
        flags.set(EventFlags::OUT, reading.writing);
        let data = EventData::new_u64(token * 2);
        let _ = epoll::modify(&self.epoll, reading.pane.master().as_fd(), data, flags);
    }

    fn retry(&self, state: &mut State, parser: &OutputParser) {
        for (token, reading) in state.panes.iter_mut().filter(|(_, reading)| reading.stalled) {
            reading.stalled = false;
            let data = EventData::new_u64(*token * 2);
            let _ = epoll::add(&self.epoll, reading.pane.master(), data, EventFlags::IN);
            self.arm(*token, reading);
            if reading.end.is_some() {
                self.read_rest(reading, parser);
            }
        }
    }
}

/// Checks whether output can be stored again. For panes that print nothing, no other code would notice.
fn look_for_room(panes: &mut Panes, parser: &OutputParser) {
    let now = Instant::now();
    let mut full = false;
    for reading in panes.values_mut().filter(|reading| reading.troubled) {
        full = reading.look_for_room(now, full, parser);
    }
}

fn make_nonblocking(pane: &Pane) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pane.master())?;
    Ok(rustix::fs::fcntl_setfl(pane.master(), flags | rustix::fs::OFlags::NONBLOCK)?)
}

fn find<'a>(panes: &'a mut Panes, run: &ProcessRun) -> Option<(u64, &'a mut Reading)> {
    let token = run.reader.token();
    panes.get_mut(&token).map(|reading| (token, reading))
}
