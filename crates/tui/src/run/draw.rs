//! When and what to draw.

use std::time::{Duration, Instant};

use super::{Damage, Echo, Error, Tui};
use crate::outer::{self, OuterModes};
use crate::shown::ShownFrame;

/// The time between frames: sixty per second.
pub(super) const FRAME: Duration = Duration::from_micros(16_667);

/// How long other changes wait for the echo of a key: most programs print it sooner, and a frame later they would be
/// late.
const ECHO: Duration = Duration::from_millis(5);

/// The longest synchronized update of a program that drawing waits for.
const DRAWING: Duration = Duration::from_millis(100);

impl Tui {
    /// When the next frame is due: an echo at once, and nothing during a synchronized update of a visible
    /// program, up to a limit. While an echo is expected, nothing else is drawn for a moment: whoever draws is busy when
    /// the echo comes.
    pub(super) fn draw_at(&self) -> Instant {
        let due = match self.echo {
            Echo::Due => self.drawn,
            Echo::Awaited => (self.drawn + FRAME).max(self.sent + ECHO),
            Echo::None => self.drawn + FRAME,
        };
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
        let outer = OuterModes::of(&self.model);
        let switch = self.outer.switch(outer);
        self.terminal.push(&switch);
        self.outer = outer;
        let shown = self.shown.as_mut().filter(|_| self.damage == Damage::Screens);
        let rows = shown.and_then(|shown| shown.draw_screens(&self.model, self.depth));
        match rows {
            Some(bytes) => self.terminal.push(&bytes),
            None => self.draw_all(),
        }
        self.terminal.flush()?;
        (self.dirty, self.damage) = (None, Damage::Screens);
        self.drawn = Instant::now();
        if self.echo == Echo::Due {
            self.echo = Echo::None;
        }
        Ok(())
    }

    fn draw_all(&mut self) {
        let title = outer::title(&self.model);
        if title != self.title {
            self.terminal.push(&outer::set_title(&title));
            self.title = title;
        }
        let (shown, bytes) = ShownFrame::draw(self.shown.as_ref(), &self.model, self.depth);
        self.terminal.push(&bytes);
        self.shown = Some(shown);
    }
}
