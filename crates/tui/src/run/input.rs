//! Input from the terminal.

use std::time::{Duration, Instant};

use super::{Error, Tui};
use crate::update::Event;
use patterm_screen::input::InputEvent;

/// How long an escape may be the beginning of a sequence: longer than a terminal needs for the rest on a slow
/// line, shorter than a user notices.
const ESCAPE: Duration = Duration::from_millis(30);

/// Bytes per read from the terminal.
const READ_BYTES: usize = 16 << 10;

impl Tui {
    pub(super) fn serve_terminal(&mut self) -> Result<bool, Error> {
        self.terminal.flush()?;
        let mut buffer = vec![0; READ_BYTES];
        // A closed terminal is a detach.
        let Some(bytes) = self.terminal.read(&mut buffer) else { return Ok(false) };
        if bytes.is_empty() {
            return Ok(true);
        }
        self.parser.feed(bytes);
        self.typed = Instant::now();
        while let Some(token) = self.parser.next_event() {
            if let InputEvent::Reply(reply) = &token {
                self.note_answer(reply);
            }
            self.handle(Event::Input(token));
        }
        Ok(true)
    }

    /// When pending bytes are taken as keys. A line may delay the rest of an answer for longer than a person
    /// pauses after the escape key.
    pub(super) fn escape_due(&self) -> Option<Instant> {
        let answering = self.answers_until.filter(|_| self.parser.is_in_string());
        let due = self.typed + ESCAPE;
        let due = answering.map_or(due, |until| until.max(due));
        self.parser.has_pending().then_some(due)
    }

    /// An escape that nothing follows is the key.
    pub(super) fn settle_escape(&mut self) {
        if self.escape_due().is_some_and(|due| due <= Instant::now()) {
            while let Some(token) = self.parser.flush() {
                self.handle(Event::Input(token));
            }
        }
    }
}
