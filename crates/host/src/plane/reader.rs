//! The thread that reads PTYs into their logs and writes what waits for them. It never looks at
//! what it moves.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use patterm_keeper::log::Log;
use patterm_keeper::{Pane, PaneEvent};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::Event;
use super::echoes::Echoes;
use super::live::Live;
use super::parser::Parser;
use super::reading::{Reading, Room};
use patterm_store::sync::lock;

/// Bytes read from one pane before the next has its turn: what keeps 200 floods from starving a
/// shell.
const TURN_BYTES: u64 = 16 << 10;

/// Bytes asked for at once: more than a terminal ever gives.
const READ_BYTES: usize = 16 << 10;

/// How soon a pane is read again whose oldest output is still looked at, where it must go to make room.
const STALLED_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// How often it is seen whether there is room on the disk again.
const TROUBLE_AGAIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The event of our own bell.
const BELL: u64 = u64::MAX;

#[derive(Debug)]
enum Command {
    Add(Box<Reading>),
    Remove(Arc<Live>),
    Write(Arc<Live>),
    Resume(Arc<Live>),
}

#[derive(Debug)]
pub(super) struct Reader {
    epoll: OwnedFd,
    bell: OwnedFd,
    commands: Mutex<Vec<Command>>,
}

type Panes = HashMap<u64, Reading>;

impl Reader {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self { epoll, bell, commands: Mutex::default() })
    }

    pub(super) fn add(&self, live: Arc<Live>, pane: Arc<Pane>, log: Log) {
        // Before anybody types into it: a terminal that is full must stop no thread.
        if let Err(error) = unblock(&pane) {
            tracing::error!(%error, id = %live.id, "a pane's terminal may block");
        }
        self.tell(Command::Add(Box::new(Reading::new(live, pane, log))));
    }

    pub(super) fn remove(&self, live: &Arc<Live>) {
        self.tell(Command::Remove(live.clone()));
    }

    pub(super) fn write(&self, live: &Arc<Live>) {
        self.tell(Command::Write(live.clone()));
    }

    pub(super) fn resume(&self, live: &Arc<Live>) {
        self.tell(Command::Resume(live.clone()));
    }

    fn tell(&self, command: Command) {
        lock(&self.commands).push(command);
        self.ring();
    }

    /// Wakes this thread.
    pub(super) fn ring(&self) {
        // A bell that rings already is as good.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(super) fn run(&self, parser: &Parser, events: &mpsc::Sender<Event>) {
        let mut panes = Panes::new();
        let (mut last, mut echoes) = (0, Echoes::default());
        let mut ready = Vec::with_capacity(256);
        while !events.is_closed() {
            if let Some(time) = echoes.hold(Instant::now()) {
                self.wait_for_echo(time, &echoes, &panes);
                self.obey(&mut panes, &mut last, &mut echoes, parser);
                self.look(&mut echoes, &mut panes, parser);
                continue;
            }
            let stalled = panes.values().any(|reading| reading.stalled);
            let troubled = panes.values().any(|reading| reading.troubled);
            let pause = match (stalled, troubled) {
                (true, _) => Some(&STALLED_AGAIN),
                (false, true) => Some(&TROUBLE_AGAIN),
                (false, false) => None,
            };
            ready.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), pause) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "the reader cannot wait");
                    return;
                }
            }
            for event in &ready {
                match event.data.u64() {
                    BELL => self.obey(&mut panes, &mut last, &mut echoes, parser),
                    token => self.serve(token, event.flags, &mut panes, parser),
                }
                // A key and its echo wait for one other pane, not for all of them.
                if !lock(&self.commands).is_empty() {
                    self.obey(&mut panes, &mut last, &mut echoes, parser);
                }
                self.look(&mut echoes, &mut panes, parser);
                if echoes.hold(Instant::now()).is_some() {
                    // What else is ready is so afterwards, too.
                    break;
                }
            }
            if stalled {
                self.retry(&mut panes, parser);
            }
            if troubled {
                look_for_room(&mut panes, parser);
            }
        }
    }

    /// Sleeps until a pane that was typed into prints something, or its echo is parsed.
    fn wait_for_echo(&self, time: Timespec, echoes: &Echoes, panes: &Panes) {
        let awaited = echoes.awaited().filter_map(|token| panes.get(&token));
        let awaited = awaited.filter(|reading| !reading.over && !reading.stalled);
        let mut polled = vec![PollFd::new(&self.bell, PollFlags::IN)];
        polled.extend(
            awaited.map(|reading| PollFd::from_borrowed_fd(reading.pane.master(), PollFlags::IN)),
        );
        let _ = poll(&mut polled, Some(&time));
    }

    /// Looks whether those that were typed into have printed something.
    fn look(&self, echoes: &mut Echoes, panes: &mut Panes, parser: &Parser) {
        echoes.look(|token| {
            let reading = panes.get(&token)?;
            let (before, held, live) = (reading.log.end(), reading.is_held(), reading.live.clone());
            if held || reading.over || reading.stalled {
                return None;
            }
            live.echoes.store(true, Ordering::Release);
            self.serve(token * 2, EventFlags::IN, panes, parser);
            let after = panes.get(&token).map_or(before, |reading| reading.log.end());
            Some((after > before).then_some(live))
        });
    }

    fn obey(&self, panes: &mut Panes, last: &mut u64, echoes: &mut Echoes, parser: &Parser) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        for command in std::mem::take(&mut *lock(&self.commands)) {
            match command {
                Command::Add(reading) => {
                    let mut reading = *reading;
                    *last += 1;
                    reading.live.token.store(*last, Ordering::Release);
                    if let Err(error) = self.watch(*last, &reading) {
                        tracing::error!(%error, id = %reading.live.id, "cannot watch a pane");
                    }
                    if !reading.log.is_open() {
                        let room = reading.make_room(Instant::now(), parser);
                        tracing::error!(id = %reading.live.id, ?room, "its log was not opened");
                    }
                    // Its end may have been told to a server that died before it wrote it down.
                    self.hear_init(&mut reading, parser);
                    panes.insert(*last, reading);
                }
                Command::Remove(live) => {
                    if let Some((token, reading)) = find(panes, &live) {
                        let _ = epoll::delete(&self.epoll, reading.pane.master());
                        let _ = epoll::delete(&self.epoll, reading.pane.events());
                        panes.remove(&token);
                    }
                }
                Command::Write(live) => {
                    if let Some((token, reading)) = find(panes, &live) {
                        self.flush(token, reading);
                        if live.awaited.load(Ordering::Acquire) {
                            echoes.wait_for(token, Instant::now());
                        }
                    }
                }
                Command::Resume(live) => {
                    if let Some((token, reading)) = find(panes, &live) {
                        self.arm(token, reading);
                    }
                }
            }
        }
    }

    /// Events of a pane's terminal have an even number, those of its init the next one.
    fn watch(&self, token: u64, reading: &Reading) -> io::Result<()> {
        let pane = &reading.pane;
        let terminal = EventData::new_u64(token * 2);
        epoll::add(&self.epoll, pane.master(), terminal, EventFlags::IN)?;
        let init = EventData::new_u64(token * 2 + 1);
        epoll::add(&self.epoll, pane.events(), init, EventFlags::IN)?;
        Ok(())
    }

    fn serve(&self, event: u64, flags: EventFlags, panes: &mut Panes, parser: &Parser) {
        let Some(reading) = panes.get_mut(&(event / 2)) else { return };
        if event % 2 == 1 {
            self.hear_init(reading, parser);
            return;
        }
        if flags.contains(EventFlags::OUT) {
            self.flush(event / 2, reading);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            // One read brings 4 KiB at the most, and asking whether there is more costs as much as
            // reading it.
            let before = reading.log.end();
            while self.read(event / 2, reading, parser)
                && reading.log.end() < before + TURN_BYTES
                && !reading.is_held()
            {}
            if reading.log.end() > before {
                parser.push(&reading.live);
                reading.keep_mark(parser);
            }
        }
    }

    /// Reads what there is. Returns whether there may be more.
    fn read(&self, token: u64, reading: &mut Reading, parser: &Parser) -> bool {
        if !reading.log.has_room() && reading.make_room(Instant::now(), parser) == Room::Soon {
            self.stall(reading);
            return false;
        }
        let before = reading.log.end();
        match reading.log.read_from(reading.pane.master(), READ_BYTES) {
            Ok(read) if read > 0 => {
                reading.live.release_parsed();
                let read = reading.log.end() - before;
                if parser.is_behind(&reading.live, read) {
                    reading.live.held.store(true, Ordering::Release);
                    self.arm(token, reading);
                }
                return true;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return true,
            // Somebody truncated the file that was read into: it goes on in another.
            Err(e) if e.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
                tracing::error!(id = %reading.live.id, "a file of its log was damaged; it is left");
                return true;
            }
            // The end of a terminal reads as this error.
            Err(e) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => self.end(reading),
            Ok(_) => self.end(reading),
            Err(error) => {
                tracing::error!(id = %reading.live.id, %error, "a terminal cannot be read now");
                self.stall(reading);
            }
        }
        false
    }

    /// Leaves a pane alone for a moment; what it prints waits in the kernel.
    fn stall(&self, reading: &mut Reading) {
        // Out of the kernel's sight: a terminal that hung up would ring without end.
        let _ = epoll::delete(&self.epoll, reading.pane.master());
        reading.stalled = true;
    }

    /// The terminal is closed.
    fn end(&self, reading: &mut Reading) {
        reading.over = true;
        let _ = epoll::delete(&self.epoll, reading.pane.master());
        lock(&reading.live.input).clear();
    }

    /// An init says that its program ended: what that printed is read first, then told.
    fn hear_init(&self, reading: &mut Reading, parser: &Parser) {
        let event = reading.pane.next_event();
        if event == PaneEvent::Gone {
            let _ = epoll::delete(&self.epoll, reading.pane.events());
        }
        let status = reading.pane.status().ok().flatten();
        if event == PaneEvent::Gone || status.is_some_and(|status| status.empty) {
            reading.live.set_empty();
        }
        let exit = status.and_then(|status| status.exit);
        if reading.ended || (exit.is_none() && event != PaneEvent::Gone) {
            return;
        }
        reading.ended = true;
        reading.exit = Some(exit.map(Into::into));
        self.read_rest(reading, parser);
    }

    /// Reads what a program that ended has printed, and then tells its end.
    fn read_rest(&self, reading: &mut Reading, parser: &Parser) {
        while !reading.over && !reading.stalled && self.read(0, reading, parser) {}
        if reading.stalled {
            // The rest of it comes first.
            parser.push(&reading.live);
            return;
        }
        if let Some(exit) = reading.exit.take() {
            *lock(&reading.live.ending) = Some((exit, reading.log.end()));
        }
        parser.push(&reading.live);
    }

    fn flush(&self, token: u64, reading: &mut Reading) {
        if reading.over {
            return;
        }
        let writing = !reading.live.flush();
        if writing != reading.writing {
            reading.writing = writing;
            self.arm(token, reading);
        }
    }

    /// Tells the kernel what we wait for at this terminal.
    fn arm(&self, token: u64, reading: &Reading) {
        if reading.over || reading.stalled || token == 0 {
            return;
        }
        let waits = reading.is_held();
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !waits);
        flags.set(EventFlags::OUT, reading.writing);
        let data = EventData::new_u64(token * 2);
        let _ = epoll::modify(&self.epoll, reading.pane.master().as_fd(), data, flags);
    }

    fn retry(&self, panes: &mut Panes, parser: &Parser) {
        for (token, reading) in panes.iter_mut().filter(|(_, reading)| reading.stalled) {
            reading.stalled = false;
            let data = EventData::new_u64(*token * 2);
            let _ = epoll::add(&self.epoll, reading.pane.master(), data, EventFlags::IN);
            self.arm(*token, reading);
            if reading.exit.is_some() {
                self.read_rest(reading, parser);
            }
        }
    }
}

/// Sees whether what keeps output from being kept is over; where nothing is printed, nobody else would.
fn look_for_room(panes: &mut Panes, parser: &Parser) {
    let now = Instant::now();
    let mut full = false;
    for reading in panes.values_mut().filter(|reading| reading.troubled) {
        full = reading.look_for_room(now, full, parser);
    }
}

fn unblock(pane: &Pane) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pane.master())?;
    Ok(rustix::fs::fcntl_setfl(pane.master(), flags | rustix::fs::OFlags::NONBLOCK)?)
}

fn find<'a>(panes: &'a mut Panes, live: &Live) -> Option<(u64, &'a mut Reading)> {
    let token = live.token.load(Ordering::Acquire);
    panes.get_mut(&token).map(|reading| (token, reading))
}
