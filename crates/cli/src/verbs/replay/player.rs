//! Plays a recording on this terminal. Its last row says where the replay is.

use std::collections::VecDeque;
use std::io;

use patterm_store::clock::Clock;
use patterm_wire::recording::{
    self, RecordedScreen, RecordedSize, RecordingForm, RecordingRequest,
};
use patterm_wire::tools::ScreenMoment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::keys::{Command, commands};
use super::playback::Playback;
use crate::print::one_line;
use crate::since::local_time;
use crate::verbs::recorded::RecordedParts;
use crate::verbs::terminal::{RESET, Terminal};

/// How often the time in the last row is updated, in milliseconds.
const TICK_MS: u64 = 250;

/// The distance of places to which a replay can go back, in milliseconds.
const PLACES_MS: u64 = 1_000;

/// Bytes per read of what is typed.
const READ_BYTES: usize = 256;

pub(super) struct Player {
    process_id: String,
    /// Where the whole replay begins and ends.
    from: Option<ScreenMoment>,
    to: u64,
    parts: RecordedParts,
    /// Changes that are not shown yet.
    queue: VecDeque<RecordedScreen>,
    playback: Playback,
    /// The time of the last change that is shown or skipped.
    last_ms: u64,
    begin_ms: u64,
    /// Offsets and times that were shown.
    places: Vec<(u64, u64)>,
    /// The first screen is always the state at the beginning.
    offset: u64,
    is_over: bool,
}

/// What ended a wait.
enum Woken {
    Typed(Vec<u8>),
    Resized,
    Time,
}

impl Player {
    pub(super) fn new(
        process_id: String,
        from: Option<ScreenMoment>,
        to: Option<ScreenMoment>,
        speed: f64,
        max_pause: f64,
    ) -> anyhow::Result<Self> {
        // An error is shown on the terminal as it was.
        let parts = RecordedParts::open(&request(&process_id, from.clone(), to, None))?;
        let begin_ms = parts.begun.from_ms.unwrap_or(0);
        Ok(Self {
            process_id,
            from,
            to: parts.begun.to,
            queue: VecDeque::new(),
            playback: Playback::new(begin_ms, speed, max_pause),
            last_ms: begin_ms,
            begin_ms,
            places: Vec::new(),
            offset: parts.begun.from,
            is_over: false,
            parts,
        })
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let terminal = Terminal::enter()?;
        let clock = Clock::system();
        self.open(&terminal, self.offset)?;
        loop {
            self.fill()?;
            let due = self.queue.front().map(|screen| screen.time_ms.unwrap_or(self.last_ms));
            let wait = due.filter(|_| !self.playback.is_paused());
            let wait = wait.map(|due| self.playback.wait_ms(due).min(TICK_MS));
            self.is_over = due.is_none();
            match wait {
                // Keys are looked at in between, however much is due.
                Some(0) => self.show_next(&terminal)?,
                _ => self.draw_status(&terminal)?,
            }
            let before = clock.now().up_ms;
            let woken = wait_for(&terminal, wait)?;
            let passed = clock.now().up_ms.saturating_sub(before);
            self.playback.pass(passed, due.unwrap_or(self.last_ms));
            match woken {
                Woken::Time => {}
                Woken::Resized => {
                    terminal.take_resized();
                    let position = self.playback.position_ms();
                    self.open(&terminal, self.offset)?;
                    self.playback.seek(position);
                }
                // The terminal is gone.
                Woken::Typed(typed) if typed.is_empty() => return Ok(()),
                Woken::Typed(typed) => {
                    for command in commands(&typed) {
                        if command == Command::Quit {
                            return Ok(());
                        }
                        self.act(command, &terminal)?;
                    }
                }
            }
        }
    }

    fn act(&mut self, command: Command, terminal: &Terminal) -> anyhow::Result<()> {
        match command {
            Command::Pause if self.is_over => self.go_back(self.begin_ms, terminal)?,
            Command::Pause => self.playback.toggle(),
            Command::Faster => self.playback.faster(),
            Command::Slower => self.playback.slower(),
            Command::Step => {
                self.playback.pause();
                self.fill()?;
                self.show_next(terminal)?;
            }
            Command::Restart => self.go_back(self.begin_ms, terminal)?,
            Command::Seek(by) => {
                let position = self.playback.position_ms();
                let target = position.saturating_add_signed(by).max(self.begin_ms);
                match target < position {
                    true => self.go_back(target, terminal)?,
                    false => self.go_forth(target, terminal)?,
                }
            }
            // The caller ends.
            Command::Quit => {}
        }
        Ok(())
    }

    /// Shows the screen of an earlier time.
    fn go_back(&mut self, target: u64, terminal: &Terminal) -> anyhow::Result<()> {
        let after = self.places.partition_point(|(_, time)| *time <= target);
        self.places.truncate(after.max(1));
        let place = self.places.last().copied();
        let (offset, time) =
            place.filter(|_| after > 0).unwrap_or((self.parts_begin(), self.begin_ms));
        self.last_ms = time;
        self.open(terminal, offset)?;
        self.playback.seek(time);
        self.go_forth(target, terminal)
    }

    fn parts_begin(&self) -> u64 {
        self.places.first().map_or(self.offset, |(offset, _)| *offset)
    }

    /// Shows everything up to a later time at once.
    fn go_forth(&mut self, target: u64, terminal: &Terminal) -> anyhow::Result<()> {
        loop {
            self.fill()?;
            match self.queue.front() {
                Some(next) if next.time_ms.unwrap_or(self.last_ms) <= target => {
                    self.show_next(terminal)?;
                }
                Some(_) => {
                    self.playback.seek(target);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    /// Begins to read at an offset, and shows the screen there.
    fn open(&mut self, terminal: &Terminal, offset: u64) -> anyhow::Result<()> {
        let window = terminal.size();
        let rows = window.rows.saturating_sub(1).max(1);
        let window = RecordedSize { rows, columns: window.columns.max(1) };
        // An offset may be one that only the first request knows as a time.
        let from = match self.places.is_empty() {
            true => self.from.clone(),
            false => Some(ScreenMoment::Offset(offset)),
        };
        let to = Some(ScreenMoment::Offset(self.to));
        self.parts = RecordedParts::open(&request(&self.process_id, from, to, Some(window)))?;
        self.queue.clear();
        terminal.write(RESET)?;
        self.fill()?;
        self.show_next(terminal)
    }

    /// Reads until there is a change that is not shown yet.
    fn fill(&mut self) -> anyhow::Result<()> {
        while self.queue.is_empty() {
            let Some(part) = self.parts.next()? else { return Ok(()) };
            self.queue.extend(part.screens);
        }
        Ok(())
    }

    fn show_next(&mut self, terminal: &Terminal) -> anyhow::Result<()> {
        let Some(screen) = self.queue.pop_front() else { return Ok(()) };
        terminal.write(screen.drawn.as_bytes())?;
        self.last_ms = self.last_ms.max(screen.time_ms.unwrap_or(self.last_ms));
        self.playback.shown(self.last_ms);
        self.offset = screen.offset;
        let last = self.places.last();
        if last.is_none_or(|(_, time)| self.last_ms >= time.saturating_add(PLACES_MS)) {
            self.places.push((screen.offset, self.last_ms));
        }
        Ok(())
    }

    /// The last row: what is replayed, when it was, and the keys.
    fn draw_status(&self, terminal: &Terminal) -> io::Result<()> {
        let size = terminal.size();
        let state = match (self.is_over, self.playback.is_paused()) {
            (true, _) => "end",
            (false, true) => "paused",
            (false, false) => "playing",
        };
        let position = self.playback.position_ms();
        let time = match self.parts.begun.from_ms {
            Some(_) => local_time(position).format("%Y-%m-%d %H:%M:%S").to_string(),
            None => "time unknown".to_owned(),
        };
        let text = format!(
            " {} {time} {state} {}x  space pause  ←→ 10s  ↑↓ speed  . step  0 begin  q quit",
            one_line(&self.parts.begun.name),
            self.playback.speed(),
        );
        // Only the name may have characters that are not one column wide, and it may be cut.
        let columns = usize::from(size.columns);
        let text: String = text.chars().take(columns).collect();
        let status =
            format!("\x1b7\x1b[?7l\x1b[{};1H\x1b[0;7m\x1b[K{text}\x1b[0m\x1b[?7h\x1b8", size.rows);
        terminal.write(status.as_bytes())
    }
}

fn request(
    process_id: &str,
    from: Option<ScreenMoment>,
    to: Option<ScreenMoment>,
    window: Option<RecordedSize>,
) -> RecordingRequest {
    let (process_id, form) = (process_id.to_owned(), RecordingForm::Screens);
    RecordingRequest { version: recording::VERSION, process_id, from, to, form, window }
}

/// Waits for a key, another size of the terminal, or so many milliseconds.
fn wait_for(terminal: &Terminal, ms: Option<u64>) -> anyhow::Result<Woken> {
    let timeout = ms.map(|ms| Timespec {
        tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: (ms % 1_000 * 1_000_000) as _,
    });
    let mut watched = [
        PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN),
        PollFd::from_borrowed_fd(terminal.resized(), PollFlags::IN),
    ];
    match poll(&mut watched, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [typed, resized] = watched.map(|watched| !watched.revents().is_empty());
    if resized {
        return Ok(Woken::Resized);
    }
    if !typed {
        return Ok(Woken::Time);
    }
    let mut bytes = vec![0; READ_BYTES];
    let read = rustix::io::read(rustix::stdio::stdin(), &mut bytes)?;
    bytes.truncate(read);
    Ok(Woken::Typed(bytes))
}
