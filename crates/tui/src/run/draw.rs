//! When and what to draw.

use std::time::{Duration, Instant};

use super::{Echo, Error, Tui};
use crate::outer::{self, OuterModes};
use crate::paint::paint;
use crate::view::view;

/// The time between frames: sixty per second.
pub(super) const FRAME: Duration = Duration::from_micros(16_667);

/// The longest synchronized update of a program that drawing waits for.
const DRAWING: Duration = Duration::from_millis(100);

impl Tui {
    /// When the next frame is due: an echo at once, and nothing during a synchronized update of a visible
    /// program, up to a limit.
    pub(super) fn draw_at(&self) -> Instant {
        let due = if self.echo == Echo::Due { self.drawn } else { self.drawn + FRAME };
        self.drawing.map_or(due, |since| due.max(since + DRAWING))
    }

    /// Notes since when a program is in a synchronized update.
    pub(super) fn note_drawing(&mut self) {
        let drawing = |pane: &crate::model::Pane| pane.screen.modes().synchronized;
        match self.model.panes.values().any(drawing) {
            true => self.drawing = self.drawing.or_else(|| Some(Instant::now())),
            false => self.drawing = None,
        }
    }

    /// Draws if something has changed, the last frame is written, and the next is due.
    pub(super) fn draw_if_due(&mut self) -> Result<(), Error> {
        if self.dirty.is_none() || self.terminal.is_behind() || self.draw_at() > Instant::now() {
            self.terminal.flush()?;
            return Ok(());
        }
        let next = view(&self.model);
        let outer = OuterModes::of(&self.model);
        let switch = self.outer.switch(outer);
        self.terminal.push(&switch);
        let title = outer::title(&self.model);
        if title != self.title {
            self.terminal.push(&outer::set_title(&title));
            self.title = title;
        }
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
