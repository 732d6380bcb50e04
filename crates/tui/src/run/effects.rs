//! Performs the effects of the core.

use std::time::Instant;

use patterm_wire::follow::SelectionAnswer;
use patterm_wire::view::FromView;

use super::{Echo, Tui};
use crate::connection::{CallConnection, ConnectionLost, PaneConnection};
use crate::layout::PaneId;
use crate::log_connection::LogConnection;
use crate::outer::{self, OuterModes};
use crate::update::{CallPurpose, Effect, Event, local_error};

/// Bytes for one pane that may wait while there is no server, or it does not answer: more than anybody types in that
/// time.
const UNSENT_BYTES: usize = 64 << 10;

/// What was typed into a pane that has no connection.
#[derive(Debug, Default)]
pub(super) struct UnsentInput {
    /// The process of the pane; empty if the pane waited for one to be started.
    process: String,
    bytes: Vec<u8>,
}

impl Tui {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Attach { pane, process, size } => {
                self.panes.remove(&pane);
                let stream = self.server.connect().ok().flatten();
                let sizes = self.model.settings.sizes;
                let begin = |stream| PaneConnection::begin(stream, &process, size, sizes).ok();
                if let Some(link) = stream.and_then(begin) {
                    self.panes.insert(pane, link);
                    // What was typed for another process is dropped.
                    let unsent = self.unsent.remove(&pane);
                    let is_for_it = |unsent: &UnsentInput| {
                        unsent.process.is_empty() || unsent.process == process
                    };
                    let unsent = unsent.filter(is_for_it);
                    self.send(pane, unsent.map(|unsent| unsent.bytes).unwrap_or_default());
                }
            }
            Effect::Leave(pane) => {
                self.panes.remove(&pane);
                self.unsent.remove(&pane);
            }
            Effect::Send(pane, bytes) => {
                if pane == self.model.focus && self.echo == Echo::None {
                    (self.echo, self.sent) = (Echo::Awaited, Instant::now());
                }
                self.send(pane, bytes);
            }
            Effect::Size(pane, size) => drop(self.write_pane(pane, |pane| pane.resize(size))),
            Effect::OpenLogs(request) => {
                let stream = self.server.connect().ok().flatten();
                let begin = |stream| LogConnection::begin(stream, &request).ok();
                self.logs = stream.and_then(begin);
                if self.logs.is_none() {
                    self.handle(Event::LogsLost);
                }
            }
            Effect::CloseLogs => self.logs = None,
            Effect::ReadTime(text) => {
                let time = self.server.read_time(&text);
                self.handle(Event::TimeRead(time));
            }
            Effect::Call { method, params, purpose } => self.call(method, &params, purpose),
            Effect::AnswerSelection { number, shown } => {
                let answer = SelectionAnswer { number, shown };
                let sent = self.follow.as_mut().map(|follow| follow.answer_selection(answer));
                if matches!(sent, Some(Err(ConnectionLost))) {
                    self.lose();
                }
            }
            Effect::CallAt { project, method, params, purpose } => {
                self.call_at(&project, method, &params, purpose);
            }
            Effect::OpenOverview => self.open_overview(),
            Effect::CloseOverview => self.close_overview(),
            Effect::Switch { key, process } => self.switch(&key, process),
            Effect::Copy(text) => self.terminal.push(&outer::copy(&text)),
            Effect::OpenLink(link) => {
                if !self.server.open_link(&link) {
                    self.handle(Event::LinkNotOpened(link));
                }
            }
            Effect::Ring => self.terminal.push(b"\x07"),
            Effect::Notify(text) => self.terminal.push(&self.terminal_info.notify(&text)),
            Effect::Edit(pad) => self.edit(&pad),
            Effect::Quit(why) => self.quit = Some(why),
        }
    }

    /// Types into a pane. What is typed while there is no server, or it does not answer, is sent later.
    fn send(&mut self, id: PaneId, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if self.panes.contains_key(&id) && self.model.hung.is_none() {
            let count = bytes.len();
            if !self.write_pane(id, |pane| pane.send(&FromView::Input(bytes))) {
                self.handle(Event::NotSent(count));
            }
            return;
        }
        let Some(process) = self.model.panes.get(&id).map(|pane| &pane.process) else { return };
        let unsent = self.unsent.entry(id).or_default();
        if unsent.process != *process {
            *unsent = UnsentInput { process: process.clone(), bytes: Vec::new() };
        }
        match unsent.bytes.len() + bytes.len() <= UNSENT_BYTES {
            true => unsent.bytes.extend(bytes),
            false => self.handle(Event::NotSent(bytes.len())),
        }
    }

    /// Sends what was typed while the server did not answer.
    pub(super) fn send_kept_input(&mut self) {
        let panes: Vec<PaneId> = self.panes.keys().copied().collect();
        for pane in panes {
            let unsent = self.unsent.remove(&pane);
            self.send(pane, unsent.map(|unsent| unsent.bytes).unwrap_or_default());
        }
    }

    /// Writes to a pane's connection; false if it has none, or it is broken.
    fn write_pane(
        &mut self,
        id: PaneId,
        write: impl FnOnce(&mut PaneConnection) -> Result<(), ConnectionLost>,
    ) -> bool {
        let Some(pane) = self.panes.get_mut(&id) else { return false };
        self.watch.sent(Instant::now());
        let is_written = write(pane).is_ok();
        if !is_written {
            self.panes.remove(&id);
        }
        is_written
    }

    fn call(&mut self, method: &str, params: &serde_json::Value, purpose: CallPurpose) {
        self.open_calls();
        match &mut self.calls {
            Some(calls) => {
                self.watch.sent(Instant::now());
                if calls.call(method, params, purpose).is_err() {
                    self.drop_calls();
                }
            }
            None => {
                let error = "there is no server at the moment; waiting for it";
                self.handle(Event::Answer(purpose, Err(local_error(error))));
            }
        }
    }

    /// Opens the connection for calls, if it is not open, and passes the user's environment.
    pub(super) fn open_calls(&mut self) {
        if self.calls.is_some() {
            return;
        }
        let Some(stream) = self.server.connect().ok().flatten() else { return };
        let (greeting, environment) = (self.server.greeting(), self.server.environment());
        self.calls = CallConnection::begin(stream, &greeting, Some(&environment)).ok();
    }

    fn edit(&mut self, pad: &str) {
        let server = &self.server;
        let edited = self.terminal.lend(|| server.edit(pad));
        (self.shown, self.outer, self.title) = (None, OuterModes::default(), String::new());
        let (width, height) = self.terminal.size();
        self.handle(Event::Resized(width, height));
        if let Ok(Err(why)) = edited {
            self.handle(Event::Answer(CallPurpose::Nothing, Err(local_error(&why))));
        }
    }
}
