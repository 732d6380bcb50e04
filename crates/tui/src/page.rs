//! Panes, and pages of panes.

use std::collections::BTreeMap;

use patterm_screen::{Screen, Size};
use patterm_wire::follow::ProcessInfo;

use crate::layout::{Layout, PaneId};
use crate::scroll::Scroll;

/// A pane: one process on its own screen.
#[derive(Debug)]
pub(crate) struct Pane {
    /// Its process; empty while that is being started.
    pub(crate) process: String,
    pub(crate) screen: Screen,
    /// Which run of the process it shows, or will show; 0 for none yet.
    pub(crate) run: u64,
    /// It shows output from the server.
    pub(crate) live: bool,
    /// Why it shows nothing.
    pub(crate) refused: Option<String>,
    /// The size it requested, and when.
    pub(crate) requested: Option<Size>,
    pub(crate) requested_at: u64,
    /// Its scrollback, if that is open.
    pub(crate) scroll: Option<Scroll>,
}

impl Pane {
    /// A pane that waits for its process.
    pub(crate) fn waiting() -> Self {
        Self::of(&ProcessInfo::default())
    }

    /// A pane that is not attached yet.
    pub(crate) fn of(process: &ProcessInfo) -> Self {
        Self {
            process: process.id.clone(),
            screen: Screen::new(Size::DEFAULT),
            run: 0,
            live: false,
            refused: None,
            requested: None,
            requested_at: 0,
            scroll: None,
        }
    }

    /// The column and row of its screen at the top left of a room: a screen for a larger terminal is shown so that the
    /// cursor is in view.
    pub(crate) fn origin(&self, columns: u16, rows: u16) -> (u16, u16) {
        origin(&self.screen, columns, rows)
    }

    /// Its connection is closed; it keeps what it shows, and will be attached again.
    pub(crate) fn detach(&mut self) {
        (self.run, self.live, self.requested, self.scroll) = (0, false, None, None);
        let bytes = self.screen.history().bytes();
        self.screen.history_mut().drop_oldest(bytes);
    }
}

/// The same for any screen.
pub(crate) fn origin(screen: &Screen, columns: u16, rows: u16) -> (u16, u16) {
    let (size, cursor) = (screen.size(), screen.cursor());
    let begin = |at: u16, room: u16, whole: u16| {
        (at + 1).saturating_sub(room).min(whole.saturating_sub(room))
    };
    (begin(cursor.column, columns, size.columns), begin(cursor.row, rows, size.rows))
}

/// A page: some panes and their layout.
#[derive(Debug, Default)]
pub(crate) struct PanePage {
    /// Its number, which does not change while other pages come and go.
    pub(crate) number: u32,
    /// The name that the user gave it.
    pub(crate) name: Option<String>,
    pub(crate) panes: BTreeMap<PaneId, Pane>,
    pub(crate) layout: Option<Layout>,
    pub(crate) focus: PaneId,
    /// The pane that had the focus before.
    pub(crate) last_focus: PaneId,
    pub(crate) zoomed: bool,
    /// Keys go to all its panes.
    pub(crate) broadcast: bool,
}

impl PanePage {
    /// Takes out the pane that shows a process; it stays in the layout.
    pub(crate) fn take_pane(&mut self, process: &str) -> Option<(PaneId, Pane)> {
        let id = *self.panes.iter().find(|(_, pane)| pane.process == process)?.0;
        self.panes.remove_entry(&id)
    }

    /// Removes a pane; the one after it gets the focus.
    pub(crate) fn remove(&mut self, id: PaneId) {
        let order = self.layout.as_ref().map(Layout::panes).unwrap_or_default();
        let at = order.iter().position(|pane| *pane == id).unwrap_or(0);
        self.panes.remove(&id);
        self.layout = self.layout.take().and_then(|layout| layout.without(id));
        if self.focus == id {
            let left: Vec<_> = order.into_iter().filter(|pane| *pane != id).collect();
            let next = left.get(at.min(left.len().saturating_sub(1))).copied();
            let before = Some(self.last_focus).filter(|last| left.contains(last));
            self.focus = before.or(next).unwrap_or(0);
        }
        if self.panes.len() < 2 {
            self.zoomed = false;
        }
    }
}
