//! Performs the effects of the core.

use patterm_wire::follow::SelectionAnswer;
use patterm_wire::view::FromView;

use super::{Echo, Tui};
use crate::connection::{CallConnection, ConnectionLost, PaneConnection};
use crate::layout::PaneId;
use crate::outer::{self, OuterModes};
use crate::update::{CallPurpose, Effect, Event, local_error};

/// Bytes that may wait while there is no server: more than anybody types in that time.
const UNSENT_BYTES: usize = 64 << 10;

/// What was typed into a pane that has no connection.
#[derive(Debug, Default)]
pub(super) struct UnsentInput {
    /// The process of the pane.
    process: String,
    bytes: Vec<u8>,
}

impl Tui {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Attach { pane, process, size, attends } => {
                self.panes.remove(&pane);
                let stream = self.server.connect().ok().flatten();
                let sizes = self.model.settings.sizes;
                let begin =
                    |stream| PaneConnection::begin(stream, &process, size, sizes, attends).ok();
                if let Some(link) = stream.and_then(begin) {
                    self.panes.insert(pane, link);
                    // What was typed for another process is dropped.
                    let unsent = self.unsent.remove(&pane);
                    let unsent = unsent.filter(|unsent| unsent.process == process);
                    self.send(pane, unsent.map(|unsent| unsent.bytes).unwrap_or_default());
                }
            }
            Effect::Leave(pane) => {
                self.panes.remove(&pane);
                self.unsent.remove(&pane);
            }
            Effect::Send(pane, bytes) => {
                if pane == self.model.focus && self.echo == Echo::None {
                    self.echo = Echo::Awaited;
                }
                self.send(pane, bytes);
            }
            Effect::Size(pane, size) => self.write_pane(pane, |pane| pane.resize(size)),
            Effect::Call { method, params, purpose } => self.call(method, &params, purpose),
            Effect::AnswerSelection { number, shown } => {
                let answer = SelectionAnswer { number, shown };
                let sent = self.follow.as_mut().map(|follow| follow.answer_selection(answer));
                if matches!(sent, Some(Err(ConnectionLost))) {
                    self.lose();
                }
            }
            Effect::Copy(text) => self.terminal.push(&outer::copy(&text)),
            Effect::Ring => self.terminal.push(b"\x07"),
            Effect::Notify(text) => self.terminal.push(&self.terminal_info.notify(&text)),
            Effect::Edit(pad) => self.edit(&pad),
            Effect::Quit(why) => self.quit = Some(why),
        }
    }

    /// Types into a pane. What is typed while there is no server is sent later.
    fn send(&mut self, id: PaneId, bytes: Vec<u8>) {
        if self.panes.contains_key(&id) {
            if !bytes.is_empty() {
                self.write_pane(id, |pane| pane.send(&FromView::Input(bytes)));
            }
            return;
        }
        let Some(process) = self.model.panes.get(&id).map(|pane| &pane.process) else { return };
        let unsent = self.unsent.entry(id).or_default();
        if unsent.process != *process {
            *unsent = UnsentInput { process: process.clone(), bytes: Vec::new() };
        }
        if unsent.bytes.len() + bytes.len() <= UNSENT_BYTES {
            unsent.bytes.extend(bytes);
        }
    }

    fn write_pane(
        &mut self,
        id: PaneId,
        write: impl FnOnce(&mut PaneConnection) -> Result<(), ConnectionLost>,
    ) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        if write(pane).is_err() {
            self.panes.remove(&id);
        }
    }

    fn call(&mut self, method: &str, params: &serde_json::Value, purpose: CallPurpose) {
        if self.calls.is_none() {
            let stream = self.server.connect().ok().flatten();
            let greeting = self.server.greeting();
            self.calls = stream.and_then(|stream| CallConnection::begin(stream, &greeting).ok());
        }
        match &mut self.calls {
            Some(calls) => {
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
