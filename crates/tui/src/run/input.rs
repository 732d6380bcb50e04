//! Input from the terminal.

use std::time::{Duration, Instant};

use super::{Error, Tui};
use crate::update::Event;

/// How long an escape may be the beginning of a sequence: longer than a terminal needs for the rest on a slow
/// line, shorter than a user notices.
pub(super) const ESCAPE: Duration = Duration::from_millis(30);

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
            self.handle(Event::Input(token));
        }
        Ok(true)
    }

    /// An escape that nothing follows is the key.
    pub(super) fn settle_escape(&mut self) {
        if self.parser.has_pending() && self.typed.elapsed() >= ESCAPE {
            while let Some(token) = self.parser.flush() {
                self.handle(Event::Input(token));
            }
        }
    }
}
