//! What happens, and what is done about it: a pure step from one model to the next, with effects for
//! the rim to carry out.

mod actions;
mod answers;
mod heard;
mod keyboard;
#[cfg(test)]
mod keyboard_tests;
mod keys;
mod mouse;
mod panes;
mod restore;
#[cfg(test)]
mod restore_tests;
mod scrolling;
mod settings;
#[cfg(test)]
mod tests;
mod trust;
#[cfg(test)]
mod yours;

use patterm_screen::{Notice as Told, Screen, Size};
use patterm_wire::follow::ProjectSnapshot;
use patterm_wire::view::ToView;
use serde_json::Value;

use crate::layout::PaneId;
use crate::model::{Model, Notice};
use patterm_screen::input::InputEvent;

/// Everything that can happen.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "events are handled one at a time and never stored")]
pub(crate) enum Event {
    /// The terminal sent something.
    Input(InputEvent),
    /// The terminal has another size.
    Resized(u16, u16),
    /// The project as it is now.
    Snapshot(ProjectSnapshot),
    /// The server is gone.
    Lost,
    /// A pane's server said something.
    Frame(PaneId, ToView),
    /// A pane's connection ended.
    PaneLost(PaneId),
    /// The server refused to attach a pane.
    PaneRefused(PaneId, String),
    /// A tool answered.
    Answer(Asked, Result<Value, String>),
    /// The file of settings says this now, or cannot be read.
    Settings(Result<String, String>),
    /// The server was ended, or did not come back.
    GaveUp,
}

/// What a tool was called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing but its error is of interest.
    Nothing,
    /// The process it started is to be shown.
    Start,
    Agents,
    Pads,
    Pad(String),
    Ports(String),
    /// How the shared MCP servers stand.
    Servers,
    /// How the project file stands, and what it would run.
    ProjectFile,
    /// Older output of a pane.
    Older(PaneId),
    Restore,
}

/// Everything that can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Attach a pane to a process, in place of what it showed.
    Attach {
        pane: PaneId,
        process: String,
        size: Size,
        /// The person went there to see what it asks for.
        attends: bool,
    },
    /// End a pane's connection.
    Leave(PaneId),
    /// Type into a pane.
    Send(PaneId, Vec<u8>),
    /// A pane has another size.
    Size(PaneId, Size),
    /// Call a tool.
    Call { tool: &'static str, arguments: Value, asked: Asked },
    /// Say what was done about a call of `select_process`.
    AnswerSelection { number: u64, shown: bool },
    /// Put a text into the clipboard.
    Copy(String),
    /// Ring the terminal's bell.
    Ring,
    /// Tell the person, who looks elsewhere.
    Notify(String),
    /// Edit a scratchpad.
    Edit(String),
    /// End.
    Quit(Option<String>),
}

/// Takes one event.
pub(crate) fn update(model: &mut Model, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Input(token) => keys::input(model, token, &mut effects),
        Event::Resized(width, height) => {
            (model.width, model.height) = (width, height);
            panes::fit(model, &mut effects);
        }
        Event::Snapshot(seen) => {
            let before = model.begun.then(|| model.seen.project_file.clone());
            panes::seen(model, seen, &mut effects);
            trust::seen(model, before.as_ref(), &mut effects);
        }
        Event::Lost => {
            model.connected = false;
            model.panes.values_mut().for_each(|pane| pane.live = false);
        }
        Event::Frame(pane, frame) => {
            let notices = take_frame(model, pane, frame);
            heard::take(model, pane, notices, &mut effects);
        }
        Event::PaneLost(pane) => {
            if let Some(pane) = model.panes.get_mut(&pane) {
                pane.live = false;
            }
        }
        Event::PaneRefused(pane, why) => {
            if let Some(pane) = model.panes.get_mut(&pane) {
                (pane.live, pane.refused) = (false, Some(why));
            }
        }
        Event::Answer(asked, answer) => answers::take(model, asked, answer, &mut effects),
        Event::Settings(text) => settings::take(model, text, &mut effects),
        Event::GaveUp => {
            let why = "the server has ended; `patterm` starts it again";
            effects.push(Effect::Quit(Some(why.to_owned())));
        }
    }
    heard::forget(model);
    keyboard::forget_marks(model);
    effects
}

/// Says something at the bottom.
pub(crate) fn tell(model: &mut Model, text: &str, bad: bool) {
    model.notice = Some(Notice { text: text.to_owned(), bad });
}

/// Shows what came; returns what the program told beside it. Its questions are the server's to answer.
fn take_frame(model: &mut Model, id: PaneId, frame: ToView) -> Vec<Told> {
    let Some(pane) = model.panes.get_mut(&id) else { return Vec::new() };
    match frame {
        ToView::Snapshot { offset, size, bytes } => {
            pane.screen = Screen::new(Size::new(size.rows, size.columns));
            pane.screen.set_replay(true);
            pane.screen.feed(&bytes);
            pane.screen.set_offset(offset);
            pane.live = true;
        }
        ToView::Output { bytes, .. } => {
            pane.screen.set_replay(false);
            pane.screen.feed(&bytes);
            pane.screen.set_replay(true);
            pane.screen.take_replies();
            forget_old(&mut pane.screen);
        }
        ToView::Ended { .. } => {}
    }
    pane.screen.take_notices()
}

/// Memory for rows that scrolled off one pane; older ones can be asked for.
const HISTORY_BYTES: usize = 4 << 20;

fn forget_old(screen: &mut Screen) {
    let bytes = screen.history().bytes();
    if bytes > HISTORY_BYTES {
        screen.history_mut().drop_oldest(bytes - HISTORY_BYTES / 2);
    }
}
