//! Events and their effects: a pure step from one model to the next, with effects that the outer loop performs.

mod actions;
mod answering;
mod answers;
mod arranging;
#[cfg(test)]
mod copy_tests;
mod dashboard;
mod digest;
#[cfg(test)]
mod digest_tests;
mod ended;
mod keyboard;
#[cfg(test)]
mod keyboard_tests;
mod keys;
mod logs;
#[cfg(test)]
mod logs_tests;
mod mouse;
mod notices;
mod overview;
#[cfg(test)]
mod overview_tests;
mod pages;
#[cfg(test)]
mod pages_tests;
mod panes;
mod past;
#[cfg(test)]
mod past_tests;
#[cfg(test)]
mod personal_tests;
#[cfg(test)]
mod prompt_tests;
mod restore;
#[cfg(test)]
mod restore_tests;
mod scrolling;
mod settings;
mod sharing;
mod split;
#[cfg(test)]
mod tests;
mod trust;

use patterm_screen::{Notice as ProgramNotice, Screen, Size};
use patterm_wire::error::INTERNAL_ERROR;
use patterm_wire::follow::ProjectSnapshot;
use patterm_wire::logs::{LogLines, LogsRequest};
use patterm_wire::view::ToView;
use patterm_wire::{ErrorObject, Method};
use serde_json::Value;

pub(crate) use dashboard::is_open as is_dashboard_open;
pub(crate) use keyboard::TYPING_MS;

use crate::layout::PaneId;
use crate::model::{Model, Notice, NoticeSubject};
use crate::overview::OverviewEvent;
use crate::saved_layout::SavedLayout;
pub(crate) use overview::Switched;
use patterm_screen::input::InputEvent;

/// What can happen.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "events are passed one at a time, never stored")]
pub(crate) enum Event {
    /// Input from the terminal.
    Input(InputEvent),
    /// The terminal's size has changed.
    Resized(u16, u16),
    /// The current state of the project.
    Snapshot(ProjectSnapshot),
    /// The connection to the server is lost.
    Lost,
    /// The server does not answer: why, and what to do about it.
    Hung(String),
    /// The server answers again.
    Answers,
    /// This many bytes of input were not sent: too many wait for the server already.
    NotSent(usize),
    /// A frame for a pane.
    Frame(PaneId, ToView),
    /// A pane's connection ended.
    PaneLost(PaneId),
    /// The server refused to attach a pane.
    PaneRefused(PaneId, String),
    /// Lines of the logs.
    Logs(LogLines),
    /// The connection for the logs ended.
    LogsLost,
    /// The server refused to send the logs.
    LogsRefused(String),
    /// A time that the user typed, in milliseconds since 1970, or why it is not one.
    TimeRead(Result<u64, String>),
    /// The outcome of a call.
    Answer(CallPurpose, Result<Value, ErrorObject>),
    /// The new content of the settings file, or why it cannot be read.
    Settings(Result<String, String>),
    /// Another terminal has changed the layout that both share.
    Layout(SavedLayout),
    /// There is no browser for this link.
    LinkNotOpened(String),
    /// News about the servers of all projects.
    Overview(OverviewEvent),
    /// Another project is shown.
    Switched(Box<Switched>),
    /// Nothing was typed after the leader for a while.
    LeaderWaited,
    /// The dashboard needs its next measurement.
    UsageDue,
    /// The user has not typed for a while, and a digest waits for that.
    DigestDue,
    /// The server was ended, or is not coming back.
    GaveUp,
}

/// What the result of a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    /// Only an error is shown.
    Nothing,
    /// Show the process that was started: in the pane that waits for it, if there is one.
    Start(Option<PaneId>),
    Agents,
    Pads,
    Pad(String),
    Message(u64),
    Ports(String),
    /// The screens for the time bar with this number.
    Past(u64),
    /// The shared MCP servers.
    Servers,
    /// The project file, and what it would run.
    ProjectFile,
    /// Older output of a pane.
    Older(PaneId),
    Restore,
    /// The answer to the dialog of the agent with this name.
    Answer(String),
    /// Whether the server answers at all.
    SignOfLife,
    /// What all processes use, for the dashboard.
    Usage,
    /// What happened while the user was away; the user may have asked for it.
    Digest {
        by_user: bool,
    },
    /// The server knows what the user has seen.
    Looked,
}

/// What the outer loop should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Attach a pane to a process.
    Attach { pane: PaneId, process: String, size: Size },
    /// Close a pane's connection.
    Leave(PaneId),
    /// Type into a pane.
    Send(PaneId, Vec<u8>),
    /// Resize a pane.
    Size(PaneId, Size),
    /// Read the logs of all processes.
    OpenLogs(LogsRequest),
    /// Close the connection for the logs.
    CloseLogs,
    /// Find out which time the user means with this text.
    ReadTime(String),
    /// Call a method or a tool.
    Call { method: &'static str, params: Value, purpose: CallPurpose },
    /// Call a method of another project's server.
    CallAt { project: String, method: &'static str, params: Value, purpose: CallPurpose },
    /// Connect to the servers of all projects.
    OpenOverview,
    /// End those connections.
    CloseOverview,
    /// Show another project, with this process.
    Switch { key: String, process: Option<String> },
    /// Report what was done about a call of `select_process`.
    AnswerSelection { number: u64, shown: bool },
    /// Copy a text to the clipboard.
    Copy(String),
    /// Open a link in a browser.
    OpenLink(String),
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
            let settings_problem = model.snapshot.settings_problem.take();
            let was_connected = model.connected;
            let notifications = notices::new_notifications(model, &snapshot);
            panes::apply_snapshot(model, snapshot, &mut effects);
            notices::notify(model, notifications, &mut effects);
            if before.is_some() {
                settings::note_problem(model, settings_problem.as_deref());
            }
            trust::apply_snapshot(model, before.as_ref(), &mut effects);
            if !was_connected {
                digest::connected(model, before.is_none(), &mut effects);
            }
            logs::reopen(model, &mut effects);
            answering::refresh(model);
        }
        Event::Lost => {
            model.connected = false;
            if model.hung.take().is_some() {
                let text = "the server ended without having answered; what you typed just before that may be lost";
                notify(&mut *model, text, true);
            }
            model.panes.values_mut().for_each(|pane| pane.live = false);
            logs::lost(model);
        }
        Event::Hung(advice) => model.hung = Some(advice),
        Event::Answers => model.hung = None,
        Event::NotSent(bytes) => {
            let text = format!(
                "{bytes} bytes that you typed were not sent: the server does not read them"
            );
            notify(model, &text, true);
        }
        Event::Frame(pane, frame) => {
            let notices = take_frame(model, pane, frame);
            notices::take_bells(model, pane, notices, &mut effects);
            digest::scroll(model, pane, &mut effects);
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
        Event::Logs(lines) => logs::take(model, lines),
        Event::LogsLost => logs::lost(model),
        Event::LogsRefused(why) => logs::refused(model, &why),
        Event::TimeRead(time) => past::time_read(model, time, &mut effects),
        Event::Answer(asked, answer) => answers::take(model, asked, answer, &mut effects),
        Event::Settings(text) => settings::take(model, text, &mut effects),
        Event::Layout(saved) => sharing::take(model, saved, &mut effects),
        Event::LinkNotOpened(link) => {
            notify(model, &format!("there is no browser here; copied {link}"), false);
            effects.push(Effect::Copy(link));
        }
        Event::Overview(news) => overview::take(model, news),
        Event::Switched(to) => overview::switched(model, *to),
        Event::LeaderWaited => model.leader_at = 0,
        Event::UsageDue => dashboard::request(model, &mut effects),
        Event::DigestDue => digest::paused(model),
        Event::GaveUp => {
            let why = "the server has ended; `patterm` starts it again";
            effects.push(Effect::Quit(Some(why.to_owned())));
        }
    }
    digest::show_if_free(model);
    overview::close_if_left(model, &mut effects);
    notices::forget_bells(model);
    keyboard::forget_marks(model);
    logs::forget(model, &mut effects);
    past::forget(model);
    effects
}

/// Shows a text at the bottom.
pub(crate) fn notify(model: &mut Model, text: &str, is_error: bool) {
    let (text, subject) = (text.to_owned(), NoticeSubject::Other);
    model.notice = Some(Notice { text, is_error, subject });
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
