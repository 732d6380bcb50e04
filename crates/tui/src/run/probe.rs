//! Asks the terminal what it can do, and draws accordingly.

use std::io;
use std::time::{Duration, Instant};

use patterm_screen::input::{InputEvent, InputParser, TerminalReply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Tui;
use crate::outer::TerminalInfo;
use crate::paint::ColourDepth;
use crate::probe::{MORE_QUESTIONS, QUESTIONS, TerminalFeatures};
use crate::terminal::Terminal;

/// How long an answer may take, on a slow line.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a leaving TUI waits for answers, which would otherwise be typed into the shell: the user has already
/// detached.
const LEAVING: Duration = Duration::from_millis(200);

impl Tui {
    /// Asks the terminal for its colours, unless they do not matter or are known.
    pub(super) fn ask_terminal(&mut self, now: Instant) {
        let info = self.terminal_info;
        if self.depth != ColourDepth::None && info.answers && !info.tmux {
            self.terminal.push(QUESTIONS);
            self.answers_until = Some(now + PATIENCE);
        }
    }

    /// Takes an answer into account; if it changes the colours, everything is drawn again.
    pub(super) fn note_answer(&mut self, reply: &TerminalReply) {
        if self.answers_until.is_none() {
            return;
        }
        self.features.note(reply);
        if self.features.is_complete {
            self.answers_until = None;
        }
        let depth = self.depth.after_answer(self.features.true_colour);
        if depth != self.depth {
            self.depth = depth;
            self.shown = None;
        }
    }

    /// Reads answers that are still to come, so that the shell does not get them.
    pub(super) fn take_late_answers(&mut self) {
        if self.answers_until.is_some_and(|until| until > Instant::now()) {
            // What was typed in this moment is lost, too.
            let _ = answers(&mut self.terminal, &mut self.parser, &mut self.features, LEAVING);
        }
    }
}

impl TerminalFeatures {
    /// Asks the terminal for everything; for a program that does not show the project. The screen stays as it is.
    /// `None` for a terminal that must not be asked, which is known from these variables.
    pub fn ask(variable: impl Fn(&str) -> Option<String>) -> io::Result<Option<Self>> {
        if !TerminalInfo::of(variable).answers {
            return Ok(None);
        }
        let (mut features, mut parser) = (Self::default(), InputParser::default());
        let mut terminal = Terminal::enter()?;
        terminal.push(MORE_QUESTIONS);
        terminal.push(QUESTIONS);
        answers(&mut terminal, &mut parser, &mut features, PATIENCE)?;
        Ok(Some(features))
    }
}

/// Reads until the terminal has answered, for a limited time.
fn answers(
    terminal: &mut Terminal,
    parser: &mut InputParser,
    features: &mut TerminalFeatures,
    patience: Duration,
) -> io::Result<()> {
    let until = Instant::now() + patience;
    let mut buffer = [0; 4096];
    loop {
        terminal.flush()?;
        while let Some(event) = parser.next_event() {
            if let InputEvent::Reply(reply) = event {
                features.note(&reply);
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if features.is_complete || left.is_zero() {
            return Ok(());
        }
        let flags = match terminal.is_behind() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut watched = [PollFd::from_borrowed_fd(terminal.file(), flags)];
        let left =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut watched, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let Some(bytes) = terminal.read(&mut buffer) else { return Ok(()) };
        parser.feed(bytes);
    }
}
