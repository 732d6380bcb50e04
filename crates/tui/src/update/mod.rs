//! Events and their effects: a pure step from one model to the next, with effects that the outer loop performs.

mod actions;
mod answers;
mod keyboard;
#[cfg(test)]
mod keyboard_tests;
mod keys;
mod mouse;
mod notices;
mod panes;
#[cfg(test)]
mod personal_tests;
mod restore;
#[cfg(test)]
mod restore_tests;
mod scrolling;
mod settings;
#[cfg(test)]
mod tests;
mod trust;

use patterm_screen::{Notice as ProgramNotice, Screen, Size};
use patterm_wire::error::INTERNAL_ERROR;
use patterm_wire::follow::ProjectSnapshot;
use patterm_wire::view::ToView;
use patterm_wire::{ErrorObject, Method};
use serde_json::Value;

use crate::layout::PaneId;
use crate::model::{Model, Notice};
use patterm_screen::input::InputEvent;

/// What can happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// Input from the terminal.
    Input(InputEvent),
    /// The terminal's size has changed.
    Resized(u16, u16),
    /// The current state of the project.
    Snapshot(ProjectSnapshot),
    /// The connection to the server is lost.
    Lost,
    /// A frame for a pane.
    Frame(PaneId, ToView),
    /// A pane's connection ended.
    PaneLost(PaneId),
    /// The server refused to attach a pane.
    PaneRefused(PaneId, String),
    /// The outcome of a call.
    Answer(CallPurpose, Result<Value, ErrorObject>),
    /// The new content of the settings file, or why it cannot be read.
    Settings(Result<String, String>),
    /// The server was ended, or is not coming back.
    GaveUp,
}

/// What the result of a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// Only an error is shown.
    Nothing,
    /// Show the process that was started.
    Start,
    Agents,
    Pads,
    Pad(String),
    Ports(String),
    /// The shared MCP servers.
    Servers,
    /// The project file, and what it would run.
    ProjectFile,
    /// Older output of a pane.
    Older(PaneId),
    Restore,
}

/// What the outer loop should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Attach a pane to a process.
    Attach {
        pane: PaneId,
        process: String,
        size: Size,
        /// The user opened it because it asked for attention.
        attends: bool,
    },
    /// Close a pane's connection.
    Leave(PaneId),
    /// Type into a pane.
    Send(PaneId, Vec<u8>),
    /// Resize a pane.
    Size(PaneId, Size),
    /// Call a method or a tool.
    Call { method: &'static str, params: Value, purpose: CallPurpose },
    /// Report what was done about a call of `select_process`.
    AnswerSelection { number: u64, shown: bool },
    /// Copy a text to the clipboard.
    Copy(String),
    /// Ring the terminal's bell.
    Ring,
    /// Show a desktop notification.
    Notify(String),
    /// Edit a scratchpad.
    Edit(String),
    /// Quit, with an error if there is one.
    Quit(Option<String>),
}

impl Effect {
    /// Calls a method or a tool.
    pub(crate) fn call<M: Method>(params: &M::Params, purpose: CallPurpose) -> Self {
        // Parameters are plain data, which can always be serialized.
        let params = serde_json::to_value(params).unwrap_or_default();
        Self::Call { method: M::NAME, params, purpose }
    }
}

/// An error of the TUI itself in place of a response.
pub(crate) fn local_error(text: &str) -> ErrorObject {
    ErrorObject::new(INTERNAL_ERROR, text)
}

/// Handles one event.
pub(crate) fn update(model: &mut Model, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Input(token) => keys::input(model, token, &mut effects),
        Event::Resized(width, height) => {
            (model.width, model.height) = (width, height);
            panes::fit(model, &mut effects);
        }
        Event::Snapshot(snapshot) => {
            let before = model.has_snapshot.then(|| model.snapshot.project_file.clone());
            panes::apply_snapshot(model, snapshot, &mut effects);
            trust::apply_snapshot(model, before.as_ref(), &mut effects);
        }
        Event::Lost => {
            model.connected = false;
            model.panes.values_mut().for_each(|pane| pane.live = false);
        }
        Event::Frame(pane, frame) => {
            let notices = take_frame(model, pane, frame);
            notices::take(model, pane, notices, &mut effects);
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
    notices::forget_bells(model);
    keyboard::forget_marks(model);
    effects
}

/// Shows a text at the bottom.
pub(crate) fn notify(model: &mut Model, text: &str, is_error: bool) {
    model.notice = Some(Notice { text: text.to_owned(), is_error });
}

/// Updates a pane's screen; returns the program's bells and notifications. The server answers its queries.
fn take_frame(model: &mut Model, id: PaneId, frame: ToView) -> Vec<ProgramNotice> {
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
            drop_old_rows(&mut pane.screen);
        }
        ToView::Ended { .. } => {}
    }
    pane.screen.take_notices()
}

/// Memory for rows that scrolled off a pane; older ones can be requested.
const HISTORY_BYTES: usize = 4 << 20;

fn drop_old_rows(screen: &mut Screen) {
    let bytes = screen.history().bytes();
    if bytes > HISTORY_BYTES {
        screen.history_mut().drop_oldest(bytes - HISTORY_BYTES / 2);
    }
}
