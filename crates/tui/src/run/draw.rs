//! Drawing, when it is due.

use std::time::{Duration, Instant};

use super::{Echo, Error, Tui};
use crate::outer::{self, Outer};
use crate::paint::paint;
use crate::view::view;

/// The time of one frame: sixty a second.
pub(super) const FRAME: Duration = Duration::from_micros(16_667);

/// A program that says it is drawing is believed for so long.
const DRAWING: Duration = Duration::from_millis(100);

impl Tui {
    /// When the next picture is due: an echo at once; and not while a program that is shown says
    /// that it is drawing, as long as that is believed.
    pub(super) fn draw_at(&self) -> Instant {
        let due = if self.echo == Echo::Due { self.drawn } else { self.drawn + FRAME };
        self.drawing.map_or(due, |since| due.max(since + DRAWING))
    }

    /// Notes since when programs have been drawing without an end.
    pub(super) fn note_drawing(&mut self) {
        let drawing = |pane: &crate::model::Pane| pane.screen.modes().synchronized;
        match self.model.panes.values().any(drawing) {
            true => self.drawing = self.drawing.or_else(|| Some(Instant::now())),
            false => self.drawing = None,
        }
    }

    /// Draws, if something changed, the last picture is out, and it is time.
    pub(super) fn draw_if_due(&mut self) -> Result<(), Error> {
        if self.dirty.is_none() || self.terminal.is_behind() || self.draw_at() > Instant::now() {
            self.terminal.flush()?;
            return Ok(());
        }
        let next = view(&self.model);
        let outer = Outer::of(&self.model);
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
